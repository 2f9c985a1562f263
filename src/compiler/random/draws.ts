/**
 * @file Bulk random numbers with the same bits on every machine: only operations that IEEE 754 defines to the last bit.
 */
import { fillNormal } from './distributions.js';
import { bitsToUniform, type PrngKey, randomBitsInto } from './prng.js';

/** A distribution: N(0, scale^2), uniform in [-scale, scale), or the constant `scale`. */
export interface Distribution {
  readonly kind: 'normal' | 'uniform' | 'constant';
  readonly scale: number;
}

/** An array and the key that fills it. */
export interface Draw extends Distribution {
  readonly key: PrngKey;
  readonly out: Float32Array;
}

/** Fills an array synchronously on this thread. */
export function fillNow({ kind, key, scale, out }: Draw): void {
  if (kind === 'constant') {
    out.fill(scale);
    return;
  }
  const fill = kind === 'normal' ? fillNormal : fillUniform;
  const block = new Uint32Array(BLOCK);
  for (let first = 0; first < out.length; first += BLOCK) {
    const count = Math.min(BLOCK, out.length - first);
    const bits = block.subarray(0, count + (count & 1));
    randomBitsInto(key, first, bits);
    fill(bits, scale, out.subarray(first, first + count));
  }
}

/** One uniform number per word. */
function fillUniform(bits: Uint32Array, scale: number, out: Float32Array): void {
  for (let i = 0; i < out.length; i++) out[i] = scale * (2 * bitsToUniform(bits[i]!) - 1);
}

/** Words drawn at a time; they fit the first-level cache. */
const BLOCK = 1 << 12;
