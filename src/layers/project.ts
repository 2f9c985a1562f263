/** @file Matrix products over the last dimension that stay two-dimensional. */
import { type Tensor, tf } from '../compiler/index.js';

/**
 * x [..., D] times w [D, E], or times w [E, D] transposed. Leading dimensions are flattened for the product: one
 * large matrix product is what every engine does best.
 *
 * @returns [..., E].
 */
export function projectLastDim(x: Tensor, w: Tensor, transposeW = false): Tensor {
  const outDims = w.shape[transposeW ? 0 : 1]!;
  const product = tf.matMul(flattenLeading(x) as tf.Tensor2D, w as tf.Tensor2D, false, transposeW);
  return x.rank === 2 ? product : tf.reshape(product, [...x.shape.slice(0, -1), outDims]);
}

/** [..., D] as [product of the rest, D]; a tensor of rank 2 is returned as it is. */
export function flattenLeading(x: Tensor): Tensor {
  return x.rank === 2 ? x : tf.reshape(x, [-1, x.shape.at(-1)!]);
}
