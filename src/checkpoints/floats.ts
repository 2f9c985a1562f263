/** @file Elements of files as float32: exact, or an error with the element's position. */

import type { SafetensorsDtype } from './safetensors.js';

/** Reads elements from bytes that start on a multiple of 8. */
interface Elements {
  readonly bytes: number;
  readonly read: (buffer: ArrayBuffer, count: number) => ArrayLike<number | bigint>;
  /** Whether float32 has every value, or rounds a float to its nearest. */
  readonly fits?: true;
}

/** Dtypes that can be read as float32. */
const ELEMENTS: Partial<Record<SafetensorsDtype, Elements>> = {
  F64: { bytes: 8, read: (buffer, count) => new Float64Array(buffer, 0, count) },
  F32: { bytes: 4, read: (buffer, count) => new Float32Array(buffer, 0, count), fits: true },
  F16: { bytes: 2, read: (buffer, count) => widenHalves(new Uint16Array(buffer, 0, count)), fits: true },
  BF16: { bytes: 2, read: (buffer, count) => widenBfloat16(new Uint16Array(buffer, 0, count)), fits: true },
  I64: { bytes: 8, read: (buffer, count) => new BigInt64Array(buffer, 0, count) },
  U64: { bytes: 8, read: (buffer, count) => new BigUint64Array(buffer, 0, count) },
  I32: { bytes: 4, read: (buffer, count) => new Int32Array(buffer, 0, count) },
  U32: { bytes: 4, read: (buffer, count) => new Uint32Array(buffer, 0, count) },
  I16: { bytes: 2, read: (buffer, count) => new Int16Array(buffer, 0, count), fits: true },
  U16: { bytes: 2, read: (buffer, count) => new Uint16Array(buffer, 0, count), fits: true },
  I8: { bytes: 1, read: (buffer, count) => new Int8Array(buffer, 0, count), fits: true },
  U8: { bytes: 1, read: (buffer, count) => new Uint8Array(buffer, 0, count), fits: true },
};

/** Bytes of an element of a dtype that can be read as float32; undefined for the others. */
export const floatBytes = (dtype: SafetensorsDtype): number | undefined => ELEMENTS[dtype]?.bytes;

/**
 * The first `count` elements of a buffer as float32. F64 is rounded to the nearest; F16 and BF16 keep every value, also
 * subnormal ones, infinities and NaN.
 *
 * @param dtype one with `floatBytes`.
 * @throws RangeError with the element's index, for an integer that float32 would round and a finite F64 beyond its range.
 */
export function asFloats(dtype: SafetensorsDtype, buffer: ArrayBuffer, count: number): Float32Array {
  const { read, fits = false } = ELEMENTS[dtype]!;
  const elements = read(buffer, count);
  if (elements instanceof Float32Array) return elements;
  const floats = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    const element = elements[i]!;
    floats[i] = Number(element);
    if (!fits && !isKept(element, floats[i]!, dtype))
      throw new FloatRangeError(i, `${element} has no float32 of its value`);
  }
  return floats;
}

/** An element that float32 can't hold. */
export class FloatRangeError extends RangeError {
  override readonly name = 'FloatRangeError';

  constructor(
    /** Among those that were read. */
    readonly index: number,
    problem: string,
  ) {
    super(problem);
  }
}

function isKept(element: number | bigint, float: number, dtype: SafetensorsDtype): boolean {
  if (typeof element === 'bigint') return BigInt(float) === element;
  // A weight in double precision may be rounded, as PyTorch does; it must not become infinite.
  return dtype === 'F64' ? Number.isFinite(float) || !Number.isFinite(element) : float === element;
}

/** bfloat16 is the upper half of float32. */
function widenBfloat16(halves: Uint16Array): Float32Array {
  return new Float32Array(Uint32Array.from(halves, (half) => half << 16).buffer);
}

/** IEEE 754 half precision: 1 bit of sign, 5 of exponent, 10 of fraction. */
function widenHalves(halves: Uint16Array): Float32Array {
  const bits = halfTable();
  const widened = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) widened[i] = bits[halves[i]!]!;
  return new Float32Array(widened.buffer);
}

let table: Uint32Array | undefined;

/** The float32 of every half, as bits, so that a NaN keeps its payload. */
function halfTable(): Uint32Array {
  table ??= Uint32Array.from({ length: 1 << 16 }, (_, half) => {
    const sign = (half & 0x8000) << 16;
    const exponent = (half >> 10) & 0x1f;
    const fraction = half & 0x3ff;
    if (exponent === 0x1f) return (sign | 0x7f80_0000 | (fraction << 13)) >>> 0;
    if (exponent > 0) return (sign | ((exponent + 112) << 23) | (fraction << 13)) >>> 0;
    // Zero and subnormal halves, multiples of 2^-24, are normal float32s.
    const magnitude = new Uint32Array(Float32Array.of(fraction * 2 ** -24).buffer)[0]!;
    return (sign | magnitude) >>> 0;
  });
  return table;
}
