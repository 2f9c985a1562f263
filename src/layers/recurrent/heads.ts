/** @file Heads of recurrent mixers: repeated, joined, and of length 1. */
import { ops, type Tensor, tf } from '../../compiler/index.js';

/** Vectors x [..., D] of length 1: x / sqrt(Σ x² + 1e-6). */
export function unitVectors(x: Tensor): Tensor {
  const size = x.shape.at(-1)!;
  return tf.mul(ops.rmsNorm(x, null, { epsilon: 1e-6 / size }), 1 / Math.sqrt(size));
}

/** [..., N, H] with each head `times` times in a row: [..., N times, H]. */
export function repeatHeads(x: Tensor, times: number): Tensor {
  if (times === 1) return x;
  const [heads, depth] = x.shape.slice(-2) as [number, number];
  const leading = x.shape.slice(0, -2);
  const repeated = tf.broadcastTo(tf.expandDims(x, -2), [...leading, heads, times, depth]);
  return tf.reshape(repeated, [...leading, heads * times, depth]);
}

/** [..., N, H] as one depth N H. */
export const joinHeads = (x: Tensor): Tensor =>
  tf.reshape(x, [...x.shape.slice(0, -2), x.shape.at(-2)! * x.shape.at(-1)!]);
