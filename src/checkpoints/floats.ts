/** @file Elements of files as float32: exact, or an error with the element's position. */

import { widen } from '../compiler/index.js';
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
  F16: { bytes: 2, read: (buffer, count) => widen(new Uint16Array(buffer, 0, count), 'float16'), fits: true },
  BF16: {
    bytes: 2,
    read: (buffer, count) => widen(new Uint16Array(buffer, 0, count), 'bfloat16'),
    fits: true,
  },
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
