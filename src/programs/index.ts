/** @file Jobs: one run of the command each, which trains, evaluates or decodes. */
import { Profiler } from '../compiler/index.js';
import { InterruptedError, StopSignal, type StopSignalName } from '../system/index.js';
import { runCheckpointJob } from './checkpointJob.js';
import { openJobDirectory } from './jobDirectory.js';
import type { JobOptions } from './options.js';
import { runTraining } from './trainJob.js';

export { JobError, JobInUseError } from './jobErrors.js';
export type { JobMode, JobOptions } from './options.js';
export { runSweepJob } from './sweepJob.js';

/** The end of a job. */
export interface JobResult {
  /** The signal that ended it early, if any; training has then saved its state. */
  readonly signal: StopSignalName | undefined;
}

/**
 * Runs one job. The first signal makes it save and return, or end the process where there is nothing to save yet; a
 * second one ends the process.
 *
 * @param stop may be listening already.
 * @throws JobInUseError where another process works in the directory, ConfigError for configs that don't fit, InputError,
 *   CheckpointError, SummaryError or JobError for its files and surroundings.
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
    // An interruption by a signal is no failure.
    if (!(error instanceof InterruptedError) || stop.received === undefined) throw error;
  } finally {
    stop.close();
  }
  return { signal: stop.received };
}
