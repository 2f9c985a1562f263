/** @file Counter-based draws for inputs: the n-th draw of a stream has no state but n. */

import { foldIn, type PrngKey, prngKey, randomBits, threefry2x32 } from '../compiler/prng.js';

/** The key of the stream for `purpose` (a small integer) under a user's `seed` (0 or more). */
export function streamKey(seed: number, purpose: number): PrngKey {
  return foldIn(prngKey(seed), purpose);
}

/** Scales two words to an integer in [0, bound); the bias is below bound / 2^53. */
function scale(high: number, low: number, bound: number): number {
  return Math.floor(((high * 2 ** 21 + (low >>> 11)) / 2 ** 53) * bound);
}

/** Draw number `counter` (0 or more) of a stream: an integer, uniform in [0, bound). */
export function drawBelow(key: PrngKey, counter: number, bound: number): number {
  const [high, low] = threefry2x32(key, [Math.floor(counter / 2 ** 32) >>> 0, counter >>> 0]);
  return scale(high, low, bound);
}

/** A random order of 0 … size − 1, determined by `key` (Fisher-Yates). */
export function permutation(key: PrngKey, size: number): Uint32Array {
  const bits = randomBits(key, 2 * size);
  const order = new Uint32Array(size);
  for (let i = 0; i < size; i++) {
    const j = scale(bits[2 * i]!, bits[2 * i + 1]!, i + 1);
    order[i] = order[j]!;
    order[j] = i;
  }
  return order;
}
