/** @file C names, types and offsets that loops, steps and calls share. */
import type { Attrs } from '../../program/ir.js';
import { type Precision, precisionOf } from '../../program/precision.js';
import type { DType } from '../../program/tensors.js';
import { type Buffer, type Run, type Storage, storageBytes } from '../plan/views.js';
import { kernelsOf } from './productKernels.js';

/** C types of stored elements. */
export const C_TYPES: Readonly<Record<Storage, string>> = {
  float32: 'float',
  int32: 'int32_t',
  bool: 'uint8_t',
  bfloat16: 'bf16',
  float16: 'uint16_t',
  int8: 'int8_t',
  uint8: 'uint8_t',
};

/** C type of a value in a register. */
export const registerType = (dtype: DType): string => (dtype === 'float32' ? 'float' : 'int32_t');

/** Conversions of stored elements to their register type, and back. */
const CONVERSIONS: Partial<Record<Storage, readonly [load: string, store: string]>> = {
  bool: ['(int32_t)', '(uint8_t)'],
  bfloat16: ['lt_from_bf16', 'lt_to_bf16'],
  float16: ['lt_from_f16', 'lt_to_f16'],
  int8: ['(int32_t)', 'lt_to_i8'],
  uint8: ['(int32_t)', 'lt_to_u8'],
};

const converted = (storage: Storage, direction: 0 | 1, x: string): string => {
  const conversion = CONVERSIONS[storage];
  return conversion === undefined ? x : `${conversion[direction]}(${x})`;
};

/** Converts a stored element to its register type. */
export const load = (storage: Storage, element: string): string => converted(storage, 0, element);

/** Converts a register's value to its stored form. */
export const store = (storage: Storage, value: string): string => converted(storage, 1, value);

/**
 * The runtime's constant for a precision.
 *
 * @param isKept whether the packed right operand persists between runs.
 */
export function precisionName(precision: Precision, isKept = false): string {
  const { constant, kept = constant } = kernelsOf(precision);
  return isKept ? kept : constant;
}

/** The runtime's constant for the precision of a call. */
export const callPrecision = ({ attrs }: { readonly attrs: Attrs }): string =>
  precisionName(precisionOf(attrs));

const TYPE_NAMES: Partial<Record<Storage, string>> = { bfloat16: 'LT_BFLOAT16', int8: 'LT_INT8' };

/** The runtime's constant for the elements of a matrix; LT_FLOAT32 are any others of four bytes. */
export const typeName = ({ storage }: Buffer): string => TYPE_NAMES[storage] ?? 'LT_FLOAT32';

/**
 * Byte offset of item `index` of several axes, the last one fastest.
 *
 * @param strides elements of `buffer` between items of each axis.
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

/** Element offset of row `row`, the last run fastest. */
export function rowOffset(rows: readonly Run[], row = 'r'): string {
  let inner = 1;
  const terms: string[] = [];
  for (let i = rows.length - 1; i >= 0; i--) {
    const { size, stride } = rows[i]!;
    const index = inner === 1 ? row : `${row} / ${inner}`;
    const wrapped = i === 0 ? index : `${index} % ${size}`;
    if (stride !== 0) terms.unshift(`(${wrapped}) * ${stride}`);
    inner *= size;
  }
  return terms.length === 0 ? '0' : terms.join(' + ');
}
