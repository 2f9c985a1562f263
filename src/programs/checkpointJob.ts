/** @file Evaluation and decoding of the newest checkpoint, without training. */
import { join } from 'node:path';
import { CheckpointError, Checkpointer } from '../checkpoints/index.js';
import type { Profiler } from '../compiler/index.js';
import { build, ConfigError } from '../hparams/index.js';
import { EMA } from '../learners/index.js';
import type { StopSignal } from '../system/index.js';
import type { SingleTask } from '../tasks/index.js';
import { thenClose } from './closing.js';
import { DecodeProgram } from './decodeProgram.js';
import { JobError } from './errors.js';
import { EvalProgram, EvalSteps } from './evalProgram.js';
import { writeJobFiles } from './jobFiles.js';
import { machineOf } from './machine.js';
import type { JobOptions } from './options.js';
import { Reporter } from './reporter.js';
import type { FlatTrainState } from './stepCalls.js';
import { paramsOf } from './taskState.js';

/** Restores the parameters of the newest checkpoint, or in their place their average; other slots are not read. */
async function restoreParams(
  options: JobOptions,
  task: SingleTask,
  useEma: boolean,
): Promise<FlatTrainState> {
  const state = paramsOf(task);
  const checkpointer = new Checkpointer({
    directory: join(options.jobLogDir, 'checkpoints'),
    experiment: options.name,
    readOnly: true,
    notify: ({ message }) => process.stdout.write(`${message}\n`),
  });
  try {
    await checkpointer.restore(state, {
      paramsOnly: useEma ? EMA : true,
      allowPrevious: options.restorePreviousCheckpoint,
    });
  } catch (error) {
    throw error instanceof CheckpointError && error.kind === 'missing'
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

async function profileOf(options: JobOptions, profiler: Profiler): Promise<string> {
  const { writeProfile } = await import('./profile/write.js');
  return writeProfile(options, profiler, 0);
}

/** Evaluates the newest checkpoint on every dataset that does not train. */
export async function runEvaluation(options: JobOptions, stop: StopSignal): Promise<void> {
  const datasets = options.datasets.filter((dataset) => !dataset.isTraining);
  if (datasets.length === 0) {
    throw new ConfigError(`${options.name}: datasets() has none to evaluate (isTraining false).`);
  }
  const task = build(options.task);
  const state = await restoreParams(options, task, task.hp.train.hp.evalUseEmaStates);
  writeJobFiles(options, await machineOf(options));
  const reporter = new Reporter(options, {
    numTrainSteps: task.hp.train.hp.numTrainSteps,
    firstStep: state.step,
  });
  const steps = new EvalSteps(options, task, state);
  const programs = datasets.map((dataset) => new EvalProgram(options, task, steps, dataset));
  stop.postpone('leaving');
  await thenClose([reporter, ...programs], async () => {
    for (const program of programs) {
      const result = await program.run(state.step, () => stop.received !== undefined);
      if (result) reporter.evaluated(program.name, state.step, result);
    }
    if (options.profiler) reporter.tell(await profileOf(options, options.profiler));
  });
}

/** Decodes the newest checkpoint on every decode dataset. */
export async function runDecoding(options: JobOptions, stop: StopSignal): Promise<void> {
  if (options.decodeDatasets.length === 0) {
    throw new ConfigError(`${options.name}: decodeDatasets() has none to decode.`);
  }
  const task = build(options.task);
  const state = await restoreParams(options, task, task.hp.train.hp.decodeUseEmaStates);
  writeJobFiles(options, await machineOf(options));
  const reporter = new Reporter(options, {
    numTrainSteps: task.hp.train.hp.numTrainSteps,
    firstStep: state.step,
  });
  const programs = options.decodeDatasets.map((dataset) => new DecodeProgram(options, task, state, dataset));
  stop.postpone('leaving');
  await thenClose([reporter, ...programs], async () => {
    for (const program of programs) {
      const result = await program.run(state.step, () => stop.received !== undefined);
      if (result) reporter.decoded(program.name, state.step, result);
    }
    if (options.profiler) reporter.tell(await profileOf(options, options.profiler));
  });
}
