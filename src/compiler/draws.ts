/**
 * @file Bulk random numbers with the same bits on every machine: only operations that IEEE 754 defines to the last bit.
 */
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

/** 2^(1 - i) at index i, for logarithms of numbers from 1/2 to 2^32. */
const SCALES = Float64Array.from({ length: 34 }, (_, i) => 2 ** (1 - i));

/** The natural logarithm of (word + 1/2) / 2^32, to one or two units in the last place. */
function logOfWord(word: number): number {
  let exponent = 31 - Math.clz32(word);
  let mantissa = (word + 0.5) * SCALES[exponent + 1]!;
  if (mantissa > Math.SQRT2) {
    mantissa *= 0.5;
    exponent++;
  }
  // log m = 2 artanh((m - 1) / (m + 1)), a series in squares of at most 0.0295.
  const s = (mantissa - 1) / (mantissa + 1);
  const z = s * s;
  const series =
    1 / 3 +
    z *
      (1 / 5 +
        z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17 + z / 19)))))));
  return (exponent - 32) * Math.LN2 + 2 * (s + s * z * series);
}

const ANGLE = (2 * Math.PI) / 2 ** 32;

/**
 * The Box-Muller transform (1958): words r and a of one counter give scale * sqrt(-2 log((r + 1/2) / 2^32)) times the
 * cosine and the sine of 2 pi a / 2^32. An odd length drops the last number.
 */
function fillNormal(bits: Uint32Array, scale: number, out: Float32Array): void {
  for (let i = 0; i < bits.length; i += 2) {
    const radius = scale * Math.sqrt(-2 * logOfWord(bits[i]!));
    const word = bits[i + 1]!;
    // The angle as a number of quarter turns and a remainder of at most an eighth of a turn.
    const turns = ((word >>> 29) + 1) >> 1;
    const x = ANGLE * ((word - (turns << 30)) | 0);
    const z = x * x;
    const sine =
      x *
      (1 +
        z *
          (-1 / 6 +
            z *
              (1 / 120 +
                z *
                  (-1 / 5040 +
                    z * (1 / 362880 + z * (-1 / 39916800 + z * (1 / 6227020800 - z / 1307674368000)))))));
    const cosine =
      1 +
      z *
        (-1 / 2 +
          z *
            (1 / 24 +
              z *
                (-1 / 720 +
                  z *
                    (1 / 40320 +
                      z *
                        (-1 / 3628800 +
                          z * (1 / 479001600 + z * (-1 / 87178291200 + z / 20922789888000)))))));
    const isTurned = (turns & 1) === 1;
    const c = isTurned ? sine : cosine;
    const s = isTurned ? cosine : sine;
    // Cosines are negative in the second and third quadrants, sines in the third and fourth.
    out[i] = (turns + 1) & 2 ? -radius * c : radius * c;
    out[i + 1] = turns & 2 ? -radius * s : radius * s;
  }
}
