/** @file Numbers of features: converted from the values of records, and checked against their dtype. */
import { z } from 'zod';
import { sizeOf } from '../../compiler/program/index.js';
import { InputError } from '../inputErrors.js';
import { shown } from '../shown.js';

/** Element types of features. */
export type FeatureDType = 'float32' | 'int32';

/** From here on numbers round to infinity. */
const FLOAT32_END = 2 ** 128 - 2 ** 103;

/** Schema of numbers that float32 holds, rounded where it must. */
export const float32Number = z
  .number()
  .refine((number) => fits(number, 'float32'), { error: () => `expected ${EXPECTED.float32}` });

const EXPECTED: Readonly<Record<FeatureDType, string>> = {
  float32: 'a number of float32, whose magnitude is at most 3.4e38',
  int32: 'an integer from -2147483648 to 2147483647',
};

const fits = (number: number, dtype: FeatureDType): boolean =>
  dtype === 'int32' ? number === (number | 0) : Math.abs(number) < FLOAT32_END;

/** A value as a number: its own, that of its text, 1 for true; NaN for others. */
function parsed(value: unknown): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'string') return value.trim() === '' ? Number.NaN : Number(value);
  return typeof value === 'boolean' || typeof value === 'bigint' ? Number(value) : Number.NaN;
}

/**
 * The number of a value, which float32 may round.
 *
 * @param place of the value `at`. @throws InputError with its place for one that is no number, or does not fit
 */
export function numberOf<T>(value: unknown, dtype: FeatureDType, place: (at: T) => string, at: T): number {
  const number = parsed(value);
  if (fits(number, dtype)) return number;
  const isNumber = Number.isFinite(number) || (typeof value === 'bigint' && dtype === 'int32');
  throw new InputError(
    `${place(at)}: expected ${isNumber ? EXPECTED[dtype] : 'a number'}, got ${shown(value)}`,
  );
}

/**
 * Checks a feature's values for one of its arrays: `size` values in range. NaN and the infinities are valid float32.
 *
 * @throws InputError with the array's path and the number of a value that does not fit
 */
export function checkedValues(
  values: ArrayLike<number> | undefined,
  path: string,
  dtype: FeatureDType,
  size: number,
): ArrayLike<number> {
  if (values?.length !== size)
    throw new InputError(
      `array '${path}': expected ${size} values, as its spec() says; got ${values?.length ?? 'none'}`,
    );
  if (values instanceof (dtype === 'int32' ? Int32Array : Float32Array)) return values;
  for (let i = 0; i < size; i++) {
    const value = values[i]!;
    if (fits(value, dtype) || (dtype === 'float32' && value - value !== 0)) continue;
    throw new InputError(`array '${path}', value ${i}: expected ${EXPECTED[dtype]}, got ${shown(value)}`);
  }
  return values;
}

type List = ArrayLike<unknown>;

const isList = (value: unknown): value is List =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));

/** The shape that an array seems to have by its first elements. */
function shapeOf(value: unknown): number[] {
  return isList(value) ? [value.length, ...shapeOf(value[0])] : [];
}

function describe(value: unknown): string {
  const shape = shapeOf(value);
  if (shape.length === 0) return shown(value);
  if (shape.length > 1) return `one of shape [${shape.join(', ')}]`;
  return `${shape[0]} number${shape[0] === 1 ? '' : 's'}`;
}

/** Adds the numbers of an array that is nested as the shape says; false where it is not, or has other values. */
function addNested(part: unknown, shape: readonly number[], depth: number, to: Filled): boolean {
  if (!Array.isArray(part) || part.length !== shape[depth]) return false;
  const isInnermost = depth === shape.length - 1;
  for (let i = 0; i < part.length; i++) {
    const value: unknown = part[i];
    if (!isInnermost) {
      if (!addNested(value, shape, depth + 1, to)) return false;
    } else {
      if (typeof value !== 'number' || !fits(value, to.dtype)) return false;
      to.numbers[to.count++] = value;
    }
  }
  return true;
}

/** Numbers of which `count` are written. */
interface Filled {
  readonly dtype: FeatureDType;
  readonly numbers: Float32Array | Int32Array;
  count: number;
}

/**
 * The numbers of an array, row-major. It is nested as the shape says, or flat.
 *
 * @throws InputError with the column, and the indices of a part with another shape or of an invalid number
 */
export function numbersOf(
  value: unknown,
  shape: readonly number[],
  dtype: FeatureDType,
  column: string,
): Float32Array | Int32Array {
  const size = sizeOf(shape);
  const numbers = dtype === 'int32' ? new Int32Array(size) : new Float32Array(size);
  const to: Filled = { dtype, numbers, count: 0 };
  if (addNested(value, shape, 0, to)) return numbers;
  to.count = 0;
  addAny(value, shape, [], column, to);
  return numbers;
}

/** Adds the numbers of an array that may be flat, typed, or of text. @throws InputError as `numbersOf` */
function addAny(
  part: unknown,
  shape: readonly number[],
  indices: readonly number[],
  column: string,
  to: Filled,
): void {
  const placeOf = (at: readonly number[]): string =>
    `column '${column}'${at.length === 0 ? '' : `, [${at.join(', ')}]`}`;
  const isInnermost = shape.length === 1;
  const isFlat = isList(part) && !isList(part[0]) && (isInnermost || indices.length === 0);
  if (!isList(part) || part.length !== (isFlat ? sizeOf(shape) : shape[0]))
    throw new InputError(
      `${placeOf(indices)}: expected an array of shape [${shape.join(', ')}], got ${describe(part)}`,
    );
  const place = (at: number) => placeOf([...indices, at]);
  for (let i = 0; i < part.length; i++) {
    if (isFlat || isInnermost) to.numbers[to.count++] = numberOf(part[i], to.dtype, place, i);
    else addAny(part[i], shape.slice(1), [...indices, i], column, to);
  }
}
