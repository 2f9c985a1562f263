/** @file Evaluation and decoding of a checkpoint, without training. */
import { CheckpointError, Checkpointer, locateCheckpoint, readCheckpoint } from '../checkpoints/index.js';
import { build, ConfigError } from '../hparams/index.js';
import { EMA } from '../learners/index.js';
import { type StopSignal, writeText } from '../system/index.js';
import type { SingleTask } from '../tasks/index.js';
import { DecodeProgram } from './decodeProgram.js';
import { EvalProgram } from './evalProgram.js';
import { EvalSteps } from './evalStep.js';
import { expectedEvalRuns } from './expectedRuns.js';
import { runToEnd } from './jobEnd.js';
import { JobError, strayFailures } from './jobErrors.js';
import { writeJobFiles } from './jobFiles.js';
import { machineOf } from './machine.js';
import { checkpointDirectory, isOfOtherRun, type JobOptions } from './options.js';
import { Reporter } from './reporter.js';
import { Run } from './run.js';
import type { FlatTrainState } from './taskState.js';
import { paramsOf } from './taskState.js';

/** Evaluates a checkpoint on every evaluation dataset, or decodes it on every decode dataset. */
export async function runCheckpointJob(options: JobOptions, stop: StopSignal): Promise<void> {
  const { name, mode } = options;
  const evaluates = mode === 'eval';
  const datasets = evaluates
    ? options.datasets.filter((dataset) => !dataset.isTraining)
    : options.decodeDatasets;
  if (datasets.length === 0) {
    const what = evaluates
      ? 'datasets() has none to evaluate (isTraining false)'
      : 'decodeDatasets() has none to decode';
    throw new ConfigError(`${name}: ${what}.`);
  }
  const task = build(options.task);
  const { numTrainSteps, evalUseEmaStates, decodeUseEmaStates } = task.hp.train.hp;
  const state = await restoreParams(options, task, evaluates ? evalUseEmaStates : decodeUseEmaStates);
  writeJobFiles(options, await machineOf(options));
  const reporter = new Reporter(options, { numTrainSteps, firstStep: state.step });
  const explained: JobOptions = { ...options, explain: (sentence) => reporter.tell(sentence) };
  const steps = new EvalSteps(explained, task, state, expectedEvalRuns(options, task, datasets));
  const programs = datasets.map((dataset) =>
    evaluates
      ? new EvalProgram(explained, task, steps, dataset)
      : new DecodeProgram(explained, task, state, dataset),
  );
  const run = new Run(options.jobLogDir, state, reporter, stop);
  stop.postpone('leaving');
  await runToEnd(options, reporter, programs, async () => {
    const strays = strayFailures();
    strays.listen();
    try {
      for (const program of programs) await strays.during(() => run.unlessStopped(() => program.run(run)));
      return { steps: 0 };
    } finally {
      strays.close();
    }
  });
}

/** Restores the parameters of the checkpoint that the options name, or in their place their average; other slots are not read. */
export async function restoreParams(
  options: JobOptions,
  task: SingleTask,
  useEma: boolean,
): Promise<FlatTrainState> {
  const state = paramsOf(task);
  const { checkpoint } = options;
  const paramsOnly = useEma ? EMA : true;
  if (isOfOtherRun(checkpoint)) {
    readCheckpoint(locateCheckpoint(checkpoint), state, { paramsOnly });
    return state;
  }
  const checkpointer = new Checkpointer({
    directory: checkpointDirectory(options),
    experiment: options.name,
    readOnly: true,
    notify: ({ message }) => writeText(`${message}\n`),
  });
  try {
    await checkpointer.restore(state, {
      step: checkpoint,
      paramsOnly,
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
  return state;
}

function nothingTrained({ jobLogDir, mode }: JobOptions, cause: CheckpointError): JobError {
  return new JobError(
    `--job_log_dir=${jobLogDir}: --mode=${mode} needs a checkpoint, and there is none in ${cause.path}. ` +
      'Train with --mode=train first, or give the directory of a run that was trained.',
    { cause },
  );
}
