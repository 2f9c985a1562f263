/** @file Peak compute and memory rates of the machine, measured with the native engine. */
import { availableParallelism } from 'node:os';
import type { Precision } from '../program/precision.js';
import { hasKernels, isChosen, kernelsOf } from './c/productKernels.js';
import { readBandwidth, registerPeak } from './library.js';
import { openToolchain } from './toolchain/index.js';
import { type Bfloat16Products, chooseBfloat16, kernelTable, wayOf } from './toolchain/kernelTable.js';

/** Long enough that some bursts run undisturbed, short beside a training run. */
const seconds = { peak: 0.1, bandwidth: 0.25 };

/**
 * FLOP/s of a loop of register multiply-adds on every thread, with the instructions that products of this precision
 * use; null where there is no native engine, or it has none.
 *
 * @param threads 0 for one per core.
 * @param products of bfloat16; the faster ones by default.
 */
export async function nativePeak(
  precision: Precision,
  threads = 0,
  products?: Bfloat16Products,
): Promise<number | null> {
  const toolchain = await openToolchain();
  if ('reason' in toolchain || !hasKernels(precision)) return null;
  const count = threads === 0 ? availableParallelism() : threads;
  const way = isChosen(precision)
    ? wayOf(products ?? chooseBfloat16(await kernelTable(toolchain)))
    : kernelsOf(precision).value;
  return registerPeak(toolchain.runtime.library, way, count, seconds.peak);
}

/**
 * Bytes per second that all threads together read from memory; null where there is no native engine.
 *
 * @param threads 0 for one per core.
 */
export async function memoryBandwidth(threads = 0): Promise<number | null> {
  const toolchain = await openToolchain();
  if ('reason' in toolchain) return null;
  const count = threads === 0 ? availableParallelism() : threads;
  return readBandwidth(toolchain.runtime.library, count, seconds.bandwidth);
}
