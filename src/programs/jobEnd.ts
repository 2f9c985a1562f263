/** @file The end of a job: its profile is written and its parts are closed, also after errors. */
import type { Peak } from './mfu.js';
import type { JobOptions } from './options.js';
import type { Reporter } from './reporter.js';

/** A part of a job. */
interface Closable {
  close(): Promise<void>;
}

/** What the profile needs to know of the work. */
interface Profiled {
  /** Training steps that were profiled, 0 where nothing was trained. */
  readonly steps: number;
  /** The peak of MFU, if it is known already. */
  readonly peak?: Peak | undefined;
}

/**
 * Does a job's work, writes its profile where one was asked for, then closes its parts and the reporter.
 *
 * @throws the error of the work; where there is none, that of closing.
 */
export async function runToEnd(
  options: JobOptions,
  reporter: Reporter,
  parts: readonly Closable[],
  work: () => Promise<Profiled>,
): Promise<void> {
  const close = () => Promise.allSettled([...parts, reporter].map(async (part) => part.close()));
  try {
    const { steps, peak } = await work();
    const { profiler } = options;
    if (profiler !== undefined) {
      const { writeProfile } = await import('./profile/writeProfile.js');
      reporter.tell(await writeProfile(options, profiler, steps, peak));
    }
  } catch (error) {
    await close();
    throw error;
  }
  const failed = (await close()).find((closed) => closed.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
