/** @file Programs: the only loops. A job is one run of the command: training, evaluation or decoding. */
import { Profiler } from '../compiler/index.js';
import { InterruptedError, StopSignal, type StopSignalName } from '../system/index.js';
import { runCheckpointJob } from './checkpointJob.js';
import { openJobDirectory } from './jobDirectory.js';
import type { JobOptions } from './options.js';
import { runTraining } from './trainJob.js';

export { JobError, JobInUseError } from './errors.js';
export type { JobMode, JobOptions } from './options.js';
export { runSweepJob } from './sweepJob.js';

/** How a job ended. */
export interface JobResult {
  /** The signal that ended it before its time; training has then saved its state. */
  readonly signal: StopSignalName | undefined;
}

/**
 * Runs one job. The first signal makes it save and return, or end the process where there is nothing to save yet; a
 * second one ends the process.
 *
 * @param stop may listen already.
 * @throws JobInUseError where another process works in the directory, ConfigError for configs that don't fit, InputError,
 *   CheckpointError or JobError for what is around it.
 */
export async function runJob(job: JobOptions, stop = new StopSignal()): Promise<JobResult> {
  const options = job.profile ? { ...job, profiler: new Profiler() } : job;
  const { mode, jobLogDir } = options;
  stop.listen();
  try {
    const directory = await openJobDirectory(jobLogDir, mode);
    try {
      if (mode.startsWith('train')) await runTraining(options, stop);
      else await runCheckpointJob(options, stop);
    } finally {
      directory.close();
    }
  } catch (error) {
    // What a signal interrupted has no other reason to fail.
    if (!(error instanceof InterruptedError) || stop.received === undefined) throw error;
  } finally {
    stop.close();
  }
  return { signal: stop.received };
}
