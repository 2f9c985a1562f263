/** @file Evaluation and decoding of a checkpoint, without training. */
import {
  CheckpointError,
  Checkpointer,
  locateCheckpoint,
  type RestoredCheckpoint,
  type RestoreOptions,
  readCheckpoint,
} from '../checkpoints/index.js';
import { loadMapFile } from '../files/index.js';
import { build, ConfigError } from '../hparams/index.js';
import { EMA } from '../learners/index.js';
import {
  checkpointDirectory,
  isOfOtherRun,
  JobError,
  type JobOptions,
  keptProducts,
  machineOf,
  strayFailures,
  writeJobFiles,
} from '../runs/index.js';
import { type StopSignal, writeText } from '../system/index.js';
import type { SingleTask } from '../tasks/index.js';
import { DuePrograms } from './duePrograms.js';
import { restoredWeights } from './evaluatedWeights.js';
import { runToEnd } from './jobEnd.js';
import { pendingAt, programsOf, restoreStates } from './jobPrograms.js';
import { runLoop } from './loop.js';
import { Measurements } from './measurements.js';
import { metricsOf, type Progress, readProgress } from './progress.js';
import { Reporter } from './reporter.js';
import { Run } from './run.js';
import { writePostInit } from './stateFiles.js';
import { type FlatTrainState, paramsOf, type RestoredState } from './taskState.js';

/**
 * Evaluates a checkpoint on every evaluation dataset, or decodes it on every decode dataset; then the task's own programs run as
 * at the last step of training.
 */
export async function runCheckpointJob(given: JobOptions, stop: StopSignal): Promise<void> {
  const options: JobOptions = { ...given, ...keptProducts(given.jobLogDir) };
  checkDatasetsOf(options);
  const task = build(options.task);
  const { numTrainSteps, programs: own } = task.hp.train.hp;
  const useEma = task.hp.train.usesEmaStates(options.mode === 'eval' ? 'eval' : 'decode');
  const { state, ...restored } = await restore(task, options, useEma);
  const list = programsOf(options, task);
  writeJobFiles(options, await machineOf(options));
  if (options.mode !== 'eval') writePostInit(options, task);
  const reporter = new Reporter(options, { numTrainSteps, firstStep: state.step });
  const explained: JobOptions = { ...options, explain: (sentence) => reporter.tell(sentence) };
  const measurements = new Measurements(explained, task, restoredWeights(options, state, useEma));
  const run = new Run({ options, state, reporter, stop, measurements });
  // Evaluations begin with their first batch. What programs have kept in training is theirs here, too.
  const progress = own.length === 0 ? undefined : progressOf(restored);
  if (progress !== undefined) {
    restoreStates(own, progress);
    run.newest.restore(metricsOf(progress));
  }
  const programs = new DuePrograms(options, task, list, pendingAt(list, { step: state.step, isLast: true }));
  stop.postpone('leaving');
  await runToEnd(options, reporter, [programs, measurements], async () => {
    await runLoop({ run, programs, strays: strayFailures() });
    return { steps: 0 };
  });
}

/** @throws ConfigError for an experiment without datasets for the mode */
function checkDatasetsOf({ name, mode, datasets, decodeDatasets }: JobOptions): void {
  const evaluates = mode === 'eval';
  const found = evaluates ? datasets.filter((dataset) => !dataset.isTraining) : decodeDatasets;
  if (found.length > 0) return;
  const what = evaluates
    ? 'datasets() has none to evaluate (isTraining false)'
    : 'decodeDatasets() has none to decode';
  throw new ConfigError(`${name}: ${what}.`);
}

/** A checkpoint's directory, and the records that training has left in it. */
type Read = Pick<RestoredCheckpoint, 'path' | 'progress'>;

const progressOf = ({ path, progress }: Read): Progress | undefined => readProgress(progress, path);

/**
 * The parameters of the checkpoint that the options name, or in their place their average; other slots are not read. They are
 * views of the mapped file where that is possible: programs that pack them leave no other copy in memory.
 */
export async function restoreParams(
  options: JobOptions,
  task: SingleTask,
  useEma: boolean,
): Promise<RestoredState> {
  return (await restore(task, options, useEma)).state;
}

async function restore(
  task: SingleTask,
  options: JobOptions,
  useEma: boolean,
): Promise<Read & { readonly state: RestoredState }> {
  const state = paramsOf(task);
  const read = await restoreInto(state, options, {
    paramsOnly: useEma ? EMA : true,
    map: await loadMapFile(),
  });
  return { ...read, state: { ...state, views: { ...state.views, ...read.mapped } } };
}

async function restoreInto(
  state: FlatTrainState,
  options: JobOptions,
  how: Pick<RestoreOptions, 'paramsOnly' | 'map'>,
): Promise<Read & Pick<RestoredCheckpoint, 'mapped'>> {
  const { checkpoint } = options;
  if (isOfOtherRun(checkpoint)) {
    const path = locateCheckpoint(checkpoint);
    return { ...readCheckpoint(path, state, how), path };
  }
  const checkpointer = new Checkpointer({
    directory: checkpointDirectory(options),
    experiment: options.name,
    readOnly: true,
    notify: ({ message }) => writeText(`${message}\n`),
  });
  try {
    return await checkpointer.restore(state, {
      step: checkpoint,
      ...how,
      allowPrevious: options.restorePreviousCheckpoint,
    });
  } catch (error) {
    const isEmpty = checkpointer.latestStep() === undefined;
    throw isEmpty && error instanceof CheckpointError && error.kind === 'missing'
      ? nothingTrained(options, error)
      : error;
  } finally {
    await checkpointer.close();
  }
}

function nothingTrained({ jobLogDir, mode }: JobOptions, cause: CheckpointError): JobError {
  return new JobError(
    `--job_log_dir=${jobLogDir}: --mode=${mode} needs a checkpoint, and there is none in ${cause.path}. ` +
      'Train with --mode=train first, or give the directory of a run that was trained.',
    { cause },
  );
}
