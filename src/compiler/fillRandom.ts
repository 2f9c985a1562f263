/** @file Random numbers in bulk, by machine code off the main thread where there are enough of them, else on the host. */
import { type Draw, fillNow } from './draws.js';
import type { EagerDevice } from './eager/eagerBackend.js';
import { type Engine, mayBeNative } from './engine.js';
import { fillNatively } from './native/fillNatively.js';
import { openToolchain } from './native/toolchain/index.js';

/** How arrays are filled. */
export interface FillOptions {
  readonly engine?: Engine;
  readonly device?: EagerDevice;
  readonly numThreads?: number | undefined;
}

/** Fewer numbers take next to no time here. */
const MIN_NATIVE_NUMBERS = 1 << 17;

const isNative = (count: number, options: FillOptions): boolean =>
  count >= MIN_NATIVE_NUMBERS && mayBeNative(options);

/** Waits until filling arrays of so many numbers could begin at once: machine code asks for the machine's compiler first. */
export async function readyToFill(count: number, options: FillOptions = {}): Promise<void> {
  if (isNative(count, options)) await openToolchain();
}

/**
 * Fills arrays with random numbers, which depend on key, distribution and index alone: by machine code off the main
 * thread, where there are enough of them and the engine may be machine code, else here. Both give the same bits.
 */
export async function fillRandom(draws: readonly Draw[], options: FillOptions = {}): Promise<void> {
  const count = draws.reduce((sum, { out }) => sum + out.length, 0);
  if (isNative(count, options) && (await fillNatively(draws, options.numThreads))) return;
  for (const draw of draws) fillNow(draw);
}

/**
 * Has zeros written into arrays that are new, where other threads can do it: the system gives memory when it is first
 * written, and takes its time. Elsewhere they stay as they are, which is zero.
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
