/** @file A value that counts as a constant where it is differentiated. */
import * as tf from '../tfjs/tfjs.js';

/**
 * `x`, by which nothing is differentiated: what is computed from the result has no gradient by what `x` was computed from
 * (straight-through estimators, targets that a network makes itself).
 *
 * @param x any shape and dtype. @returns the same.
 */
export function stopGradient<T extends tf.Tensor>(x: T): T {
  const call = tf.customGrad((value: any) => ({
    value: tf.clone(value),
    gradFunc: () => tf.zerosLike(value),
  }));
  return call(x) as T;
}
