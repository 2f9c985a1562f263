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

/** A rule's values within the range of integers; that of int8 is alike on both sides of 0. */
const bounded = (floats: Tensor, dtype: 'int8' | 'uint8'): Tensor =>
  dtype === 'int8' ? tf.clipByValue(floats, -127, 127) : tf.clipByValue(floats, ...NARROW.uint8.range);

const isWhole = (dtype: FlatDtype): dtype is 'int8' | 'uint8' => held(dtype).dtype === 'int32';

/** The spec of so many elements as a program reads them. */
export const storedSpec = (dtype: FlatDtype, size: number): TensorSpec => ({ shape: [size], ...held(dtype) });

/** Elements as a program reads them, as float32. */
export const asFloats = (read: Tensor, dtype: FlatDtype): Tensor =>
  isWhole(dtype) ? tf.cast(read, 'float32') : read;

/** float32 as a program writes them: integers to nearest, halves to the even one. `stored` rounds floats. */
export function asWritten(floats: Tensor, dtype: FlatDtype): Tensor {
  if (!isWhole(dtype)) return floats;
  return tf.cast(tf.round(bounded(floats, dtype)), 'int32');
}

/** The results of a program that a buffer holds. */
export const stored = (written: Tensor, dtype: FlatDtype): Tensor =>
  dtype === 'float32' ? written : ops.stored(written, dtype);

/** A value as an element of a buffer. */
export function elementOf(value: number, dtype: FlatDtype): number {
  if (dtype === 'float32') return value;
  const { dtype: wide } = NARROW[dtype];
  return narrow(wide === 'int32' ? Int32Array.of(value) : Float32Array.of(value), dtype)[0]!;
}
