/** @file Native random fills: all arrays at once, on the thread team. */
import { availableParallelism } from 'node:os';
import type { Draw } from '../random/draws.js';
import { addressing, call, largePages, open } from './library.js';
import { openToolchain } from './toolchain/index.js';

/** 64-bit words of an lt_draw. */
const drawWords = 5;
const distributions = { normal: 0n, uniform: 1n, constant: 2n };

/** Arrays in use by C: an address alone does not keep them alive. */
const inUse = new Set<unknown>();

/** Fills arrays on the runtime's threads. */
async function fillArrays(runtime: string, draws: readonly Draw[], threads: number): Promise<void> {
  const [fill] = await open(runtime, 'void lt_fill(int threads, void *draws, int64_t count)');
  const [prefer, { addresses, numbers }] = await Promise.all([largePages(runtime), addressing()]);
  const arrays = draws.map(({ out }) => out);
  prefer(arrays);
  const places = addresses(arrays).table;
  const { table, address } = numbers(draws.flatMap(({ out }) => [0, out.length, 0, 0, 0]));
  const [scales, keys] = [new Float64Array(table.buffer), new Uint32Array(table.buffer)];
  draws.forEach(({ kind, scale, key }, i) => {
    const at = drawWords * i;
    table[at] = places[i]!;
    scales[at + 2] = scale;
    keys.set(key, 2 * (at + 3));
    table[at + 4] = distributions[kind];
  });
  const kept = [table, arrays];
  inUse.add(kept);
  try {
    await call(fill!, threads, address, draws.length);
  } finally {
    inUse.delete(kept);
  }
}

/**
 * Fills arrays off the main thread.
 *
 * @param numThreads one per core by default.
 * @returns false where there is no native engine.
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
