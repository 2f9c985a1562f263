/** @file Random numbers of made records: those of a record follow from the seed and its number. */
import { foldIn, prngKey, threefry2x32 } from '../src/compiler/random/index.js';

/** A random integer from 0 to `bound` − 1. */
export type Draw = (bound: number) => number;

/** The draws of one record, in their order. */
export function drawsOf(seed: number, record: number): Draw {
  const key = foldIn(prngKey(seed), record);
  let at = 0;
  return (bound) => Math.floor((threefry2x32(key, [0, at++])[0] / 2 ** 32) * bound);
}

/** A random element. */
export const pick = <T>(draw: Draw, of: ArrayLike<T>): T => of[draw(of.length)]!;

/** Rapid numbers in [0, 1) for noise, where a draw for each would take too long (Marsaglia's xorshift32). */
export function noiseOf(draw: Draw): () => number {
  let state = 1 + draw(2 ** 31);
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
