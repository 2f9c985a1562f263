/**
 * @file Conversion of arrays between narrow storage and the values that programs compute with. The bits are those of machine code
 * (lt_to_bf16 and others in native/runtime/vectormath.h).
 */
import { NARROW, type NarrowArray, type NarrowType } from './tensors.js';

/** The values of narrow elements: exact. */
export function widen(
  array: NarrowArray,
  storage: NarrowType,
): Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> {
  if (NARROW[storage].dtype === 'int32') return Int32Array.from(array);
  const words = new Uint32Array(array.length);
  const wordOf = storage === 'bfloat16' ? (bits: number) => bits << 16 : wordOfHalf;
  for (let i = 0; i < words.length; i++) words[i] = wordOf(array[i]!);
  return new Float32Array(words.buffer);
}

/**
 * Values in narrow storage. Floats become the nearest, of two the even one; those too large become infinite, and NaN stays
 * NaN. Integers beyond the storage become the least or the greatest that it has.
 *
 * @param values of the dtype that the storage holds.
 */
export function narrow(values: Float32Array | Int32Array, storage: NarrowType): NarrowArray {
  const result = new NARROW[storage].array(values.length);
  if (storage === 'int8' || storage === 'uint8') {
    const [least, most] = NARROW[storage].range;
    for (let i = 0; i < result.length; i++) result[i] = Math.min(Math.max(values[i]!, least), most);
    return result;
  }
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const bitsOf = storage === 'bfloat16' ? bfloat16Of : halfOf;
  for (let i = 0; i < words.length; i++) result[i] = bitsOf(words[i]!);
  return result;
}

const [INFINITE, QUIET] = [0x7f80_0000, 0x0040_0000];

/** The bfloat16 of a float32, both as bits. */
const bfloat16Of = (word: number): number =>
  // Rounding would carry a NaN with only low bits into infinity or a zero.
  ((word & 0x7fff_ffff) > INFINITE ? word | QUIET : word + 0x7fff + ((word >>> 16) & 1)) >>> 16;

/** The float16 of a float32, both as bits: 1 bit of sign, 5 of exponent, 10 of fraction. */
function halfOf(word: number): number {
  const sign = (word >>> 16) & 0x8000;
  const magnitude = word & 0x7fff_ffff;
  if (magnitude > INFINITE) return sign | 0x7e00 | ((magnitude >>> 13) & 0x3ff);
  // From halfway between the largest half and the next power of two on.
  if (magnitude >= 0x477f_f000) return sign | 0x7c00;
  // The exponent's bias is 127 - 15 less.
  if (magnitude >= 0x3880_0000) return sign | roundedShift(magnitude - 0x3800_0000, 13);
  const fraction = (magnitude & 0x7f_ffff) | 0x80_0000;
  // Subnormal halves are multiples of 2^-24. Below 2^-25, all is nearer to 0.
  const shift = 126 - (magnitude >>> 23);
  return shift > 24 ? sign : sign | roundedShift(fraction, shift);
}

/** x / 2^shift to the nearest integer, halves to the even one; x < 2^31. */
function roundedShift(x: number, shift: number): number {
  const half = 2 ** (shift - 1);
  return (x + half - 1 + ((x >>> shift) & 1)) >>> shift;
}

/** The float32 of a float16, both as bits, so that a NaN keeps its payload. */
function wordOfHalf(half: number): number {
  const sign = (half & 0x8000) << 16;
  const magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) return sign | INFINITE | ((magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400) return sign | ((magnitude << 13) + 0x3800_0000);
  if (magnitude === 0) return sign;
  // A subnormal half, a multiple of 2^-24, is a normal float32 by its highest bit.
  const highest = 31 - Math.clz32(magnitude);
  return sign | ((highest + 103) << 23) | ((magnitude << (23 - highest)) & 0x7f_ffff);
}
