/** @file Storage of slots: elements of flat buffers as programs read and write them, and the float32 values that rules see. */
import {
  type FlatDtype,
  NARROW,
  narrow,
  ops,
  type Tensor,
  type TensorSpec,
  tf,
} from '../../compiler/index.js';

/** The dtype that programs compute with, and the storage. */
function held(dtype: FlatDtype): Pick<TensorSpec, 'dtype' | 'storage'> {
  return dtype === 'float32' ? { dtype } : { dtype: NARROW[dtype].dtype, storage: dtype };
}

/** The integers that a rule's values become; those of int8 are alike on both sides of 0. */
const RANGES = { int8: [-127, 127], uint8: NARROW.uint8.range } as const;

const isWhole = (dtype: FlatDtype): dtype is 'int8' | 'uint8' => held(dtype).dtype === 'int32';

/** The spec of so many elements as a program reads them. */
export const storedSpec = (dtype: FlatDtype, size: number): TensorSpec => ({ shape: [size], ...held(dtype) });

/** Elements as a program reads them, as float32. */
export const asFloats = (read: Tensor, dtype: FlatDtype): Tensor =>
  isWhole(dtype) ? tf.cast(read, 'float32') : read;

/** float32 as a program writes them: integers to nearest, halves to the even one. `stored` rounds floats. */
export const asWritten = (floats: Tensor, dtype: FlatDtype): Tensor =>
  isWhole(dtype) ? (ops.nearestInteger(floats, RANGES[dtype]) as Tensor) : floats;

/** The results of a program that a buffer holds. */
export const stored = (written: Tensor, dtype: FlatDtype): Tensor =>
  dtype === 'float32' ? written : ops.stored(written, dtype);

/** A value as an element of a buffer. */
export function elementOf(value: number, dtype: FlatDtype): number {
  if (dtype === 'float32') return value;
  const { dtype: wide } = NARROW[dtype];
  return narrow(wide === 'int32' ? Int32Array.of(value) : Float32Array.of(value), dtype)[0]!;
}
