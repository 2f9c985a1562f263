/** @file Results of programs that memory holds in narrow storage. */
import { CompilerError, formatSpec, NARROW, type NarrowType, type TensorSpec } from '../program/tensors.js';
import * as tf from '../tfjs/tfjs.js';

const storages = new WeakMap<tf.Tensor, NarrowType>();

/**
 * `x` as a result that memory holds in fewer bytes: int32 as int8 or uint8, float32 as bfloat16 or float16. Where it is a
 * leaf of a compiled function's result, the array that is bound to it has these elements. Floats
 * are rounded to nearest even; those too large become infinite, as in PyTorch and JAX. Integers beyond the storage become
 * the least or the greatest that it has, as JAX's; PyTorch and NumPy take them modulo 256, which hides overflows. The tensor
 * itself has the values of `x`, not rounded.
 *
 * @param x of any shape, int32 or float32.
 * @throws CompilerError where the storage does not hold the dtype of `x`.
 */
export function stored<T extends tf.Tensor>(x: T, storage: NarrowType): T {
  const entry = NARROW[storage] as (typeof NARROW)[NarrowType] | undefined;
  if (entry?.dtype !== x.dtype) {
    const valid = Object.entries(NARROW).map(([name, { dtype }]) => `${name} (${dtype})`);
    throw new CompilerError(
      `stored: ${formatSpec(x as TensorSpec)} can't be stored as ${storage}; expected ${valid.join(', ')}. ` +
        `tf.cast changes a dtype.`,
    );
  }
  const result = tf.clone(x);
  storages.set(result, storage);
  return result;
}

/** The storage of a result; undefined for its dtype's own. */
export const storageOf = (result: tf.Tensor): NarrowType | undefined => storages.get(result);
