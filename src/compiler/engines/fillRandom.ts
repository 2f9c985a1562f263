/** @file Bulk random numbers, in machine code off the main thread where there are enough of them, else on the host. */

import type { EagerDevice } from '../eager/eagerBackend.js';
import { fillNatively } from '../native/fillNatively.js';
import { openToolchain } from '../native/toolchain/index.js';
import { type Draw, fillNow } from '../random/draws.js';
import { type Engine, mayBeNative } from './engine.js';

/** How arrays are filled. */
export interface FillOptions {
  readonly engine?: Engine;
  readonly device?: EagerDevice;
  readonly numThreads?: number | undefined;
}

/** Below this many numbers, the host is fast enough. */
const MIN_NATIVE_NUMBERS = 1 << 17;

const isNative = (count: number, options: FillOptions): boolean =>
  count >= MIN_NATIVE_NUMBERS && mayBeNative(options);

/** Waits until filling `count` numbers could start at once: machine code first needs the C toolchain. */
export async function readyToFill(count: number, options: FillOptions = {}): Promise<void> {
  if (isNative(count, options)) await openToolchain();
}

/**
 * Fills arrays with random numbers that depend only on key, distribution and index: in machine code off the main thread
 * where there are enough of them and the engine allows it, else on this thread. Both give the same bits.
 */
export async function fillRandom(draws: readonly Draw[], options: FillOptions = {}): Promise<void> {
  const count = draws.reduce((sum, { out }) => sum + out.length, 0);
  if (isNative(count, options) && (await fillNatively(draws, options.numThreads))) return;
  for (const draw of draws) fillNow(draw);
}

/**
 * Touches the pages of new arrays by writing zeros from other threads: the system allocates memory at the first write,
 * which takes time. Without machine code the arrays stay as they are, which is zero.
 */
export async function takeMemory(arrays: readonly Float32Array[], options: FillOptions = {}): Promise<void> {
  const count = arrays.reduce((sum, { length }) => sum + length, 0);
  if (!isNative(count, options)) return;
  const zeros = { kind: 'constant', scale: 0, key: [0, 0] } as const;
  await fillNatively(
    arrays.map((out) => ({ ...zeros, out })),
    options.numThreads,
  );
}
