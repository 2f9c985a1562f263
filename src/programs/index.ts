/** @file Programs: the only loops. A job is one run of the command: training, evaluation or decoding. */
import { Profiler } from '../compiler/index.js';
import { runDecoding, runEvaluation } from './checkpointJob.js';
import { makeJobDirectory } from './jobFiles.js';
import type { JobOptions } from './options.js';
import { StopSignal, type StopSignalName } from './signals.js';
import { runTraining } from './trainJob.js';

export type { DecodedExample, DecodeResult, Sample } from './decodeProgram.js';
export { JobError } from './errors.js';
export type { EvalResult } from './evalProgram.js';
export type { JobMode, JobOptions } from './options.js';
export { exitCodeOfSignal, type StopSignalName } from './signals.js';
export { endWithSweep, runSweepJob, type SweepOptions } from './sweepJob.js';
export type { TrainReport } from './trainProgram.js';

/** How a job ended. */
export interface JobResult {
  /** The signal that ended it before its time; training has then saved its state. */
  readonly signal: StopSignalName | undefined;
}

/**
 * Runs one job. The first SIGINT or SIGTERM makes it save and return, a second one ends the process.
 *
 * @throws ConfigError for configs that don't fit, InputError, CheckpointError or JobError for what is around it.
 */
export async function runJob(job: JobOptions): Promise<JobResult> {
  const options = job.profile ? { ...job, profiler: new Profiler() } : job;
  const isTraining = options.mode.startsWith('train');
  const stop = new StopSignal((signal) => {
    const what = isTraining ? 'saving a checkpoint, then leaving' : 'leaving';
    process.stderr.write(`\n${signal}: ${what}. Once more leaves at once.\n`);
  });
  stop.listen();
  try {
    if (isTraining) {
      makeJobDirectory(options.jobLogDir);
      await runTraining(options, stop);
    } else if (options.mode === 'eval') await runEvaluation(options, stop);
    else await runDecoding(options, stop);
  } finally {
    stop.close();
  }
  return { signal: stop.received };
}
