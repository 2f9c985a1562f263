/** @file End of a job: writes its profile and closes its parts, even after errors. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { JobOptions } from '../runs/index.js';
import type { Peak } from './mfu.js';
import type { Reporter } from './reporter.js';
import { HangError } from './watchdog/watchdog.js';

/** How long the parts of a run that hangs are waited for. */
const HANGING_CLOSE_MS = 3000;

/** A part of a job. */
interface Closable {
  close(): Promise<void>;
}

/** Properties of the work that the profile needs. */
interface Profiled {
  /** Number of profiled training steps, 0 without training. */
  readonly steps: number;
  /** The peak of MFU, if known already. */
  readonly peak?: Peak | undefined;
}

/**
 * Runs a job's work, writes its profile if requested, then closes its parts and the reporter.
 *
 * @throws the error of the work, else that of closing.
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
    // What hangs may not close either.
    await (error instanceof HangError ? Promise.race([close(), sleep(HANGING_CLOSE_MS)]) : close());
    throw error;
  }
  const failed = (await close()).find((closed) => closed.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}
