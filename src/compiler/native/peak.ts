/** @file Peak rates that programs of the native engine are measured against. */
import { availableParallelism } from 'node:os';
import type { Precision } from '../precision.js';
import { readBandwidth, registerPeak } from './library.js';
import { openToolchain } from './toolchain/index.js';

/** Long enough for some of the bursts that are measured to have the machine for themselves, and short beside a run. */
const seconds = { peak: 0.1, bandwidth: 0.25 };

/**
 * FLOP/s of a loop that only multiplies and adds in registers, on every thread, by the instructions that products of this
 * precision use; null where there is no native engine.
 *
 * @param threads 0 for one a core.
 */
export async function nativePeak(precision: Precision, threads = 0): Promise<number | null> {
  const toolchain = await openToolchain();
  if ('reason' in toolchain) return null;
  const count = threads === 0 ? availableParallelism() : threads;
  return registerPeak(toolchain.runtime.library, precision === 'bfloat16', count, seconds.peak);
}

/**
 * Bytes a second that all threads together read from memory; null where there is no native engine.
 *
 * @param threads 0 for one a core.
 */
export async function memoryBandwidth(threads = 0): Promise<number | null> {
  const toolchain = await openToolchain();
  if ('reason' in toolchain) return null;
  const count = threads === 0 ? availableParallelism() : threads;
  return readBandwidth(toolchain.runtime.library, count, seconds.bandwidth);
}
