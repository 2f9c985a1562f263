/** @file Random numbers by machine code: all arrays at once, on the team of threads. */
import { availableParallelism } from 'node:os';
import type { Draw } from '../draws.js';
import { fillArrays } from './library.js';
import { openToolchain } from './toolchain/index.js';

/**
 * Fills arrays off the main thread.
 *
 * @param numThreads one a core by default.
 * @returns whether it did; not where there is no native engine.
 */
export async function fillNatively(
  draws: readonly Draw[],
  numThreads = availableParallelism(),
): Promise<boolean> {
  const toolchain = await openToolchain();
  if ('reason' in toolchain) return false;
  await fillArrays(toolchain.runtime.library, draws, numThreads);
  return true;
}
