/** @file Buffers of Arrow as numbers: offsets, sizes and texts are checked before values are read by them. */
import { isUtf8 } from 'node:buffer';

/** Most values of a column in a batch, which are in memory together. */
export const MOST_ROWS = 2 ** 26;

/** Numbers of a buffer. */
export type NumberArray =
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint16Array
  | Uint32Array;
export type ArrayClass = new (buffer: ArrayBuffer, offset: number, length: number) => NumberArray;
/** Bytes of a number. */
export const bytesOf = (ArrayType: ArrayClass): number =>
  (ArrayType as unknown as { readonly BYTES_PER_ELEMENT: number }).BYTES_PER_ELEMENT;

/** Bytes as numbers, copied where these cannot begin. */
export function typed(bytes: Uint8Array, ArrayType: ArrayClass): NumberArray {
  const size = bytesOf(ArrayType);
  const from = bytes.byteOffset % size === 0 ? bytes : Uint8Array.from(bytes);
  return new ArrayType(from.buffer as ArrayBuffer, from.byteOffset, Math.floor(bytes.length / size));
}

/** @throws Error for offsets that fall, or lead beyond their values */
export function checkOffsets(offsets: NumberArray, length: number, end: number): void {
  if (length === 0) return;
  if (!(offsets[0]! >= 0)) throw new Error(`value 0 begins at ${offsets[0]}`);
  for (let i = 0; i < length; i++)
    if (offsets[i + 1]! < offsets[i]!)
      throw new Error(`value ${i} begins at ${offsets[i]} and ends at ${offsets[i + 1]}`);
  if (offsets[length]! > end)
    throw new Error(`value ${length - 1} ends at ${offsets[length]}, and its column at ${end}`);
}

/** @throws Error for values that are no UTF-8 */
export function checkTexts(
  offsets: NumberArray,
  length: number,
  values: Uint8Array,
  isValid: (i: number) => boolean,
): void {
  if (length === 0) return;
  const at = (i: number): number => Number(offsets[i]);
  const isWhole = isUtf8(values.subarray(at(0), at(length)));
  for (let i = 0; i < length; i++) {
    const [from, to] = [at(i), at(i + 1)];
    // In a text as a whole, each begins where a character does.
    const isText = isWhole
      ? from === to || (values[from]! & 0xc0) !== 0x80
      : isUtf8(values.subarray(from, to));
    if (!isText && isValid(i)) throw new Error(`text ${i} is not UTF-8`);
  }
}

/** @throws Error for lists that lead outside their column, or have more values in all than memory holds */
export function checkListViews(
  offsets: NumberArray,
  sizes: NumberArray,
  end: number,
  isValid: (i: number) => boolean,
): void {
  let all = 0;
  for (let i = 0; i < sizes.length && i < offsets.length; i++) {
    if (!isValid(i)) continue;
    const [from, size] = [Number(offsets[i]), Number(sizes[i])];
    if (!(from >= 0 && size >= 0 && from + size <= end))
      throw new Error(`value ${i} has ${size} values from ${from} on, and its column ends at ${end}`);
    all += size;
  }
  if (all > MOST_ROWS) throw new Error(`its lists have ${all} values; expected at most ${MOST_ROWS}`);
}
