/** @file Names and offsets in C that steps and calls share. */
import { type Buffer, storageBytes } from '../views.js';

/** The runtime's name of a precision; absent is float32. */
export const precisionName = (precision: unknown): string =>
  precision === 'bfloat16' ? 'LT_BFLOAT16' : 'LT_FLOAT32';

/** The runtime's name of how a matrix is stored. */
export const typeName = ({ storage }: Buffer): string => precisionName(storage);

/**
 * The byte offset of item `index` of some axes, the last one fastest.
 *
 * @param strides elements of `buffer` from one item of each axis to the next.
 */
export function byteOffset(
  index: string,
  shape: readonly number[],
  strides: readonly number[],
  { storage }: Buffer,
): string {
  let inner = 1;
  const terms: string[] = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const dim = shape[axis]!;
    if (strides[axis] !== 0 && dim !== 1)
      terms.push(`${index} / ${inner} % ${dim} * ${strides[axis]! * storageBytes(storage)}`);
    inner *= dim;
  }
  return terms.length === 0 ? '0' : `(${terms.join(' + ')})`;
}
