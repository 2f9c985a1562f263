/** @file A matrix product that adds to another matrix: what residual connections and sums of gradients become. */

import { precisionAttr } from '../precision.js';
import * as tf from '../tfjs.js';
import { sizeOf } from '../types.js';
import { defineComposite } from './composite.js';

/** alpha * op(a) op(b) + c, for matrices; c has the shape of the product. Made by a pass, not by callers. */
defineComposite('MatMulAdd', {
  inputs: ['a', 'b', 'c'],
  attrs: (raw) => ({
    transposeA: raw.transposeA,
    transposeB: raw.transposeB,
    alpha: raw.alpha,
    ...precisionAttr(raw),
  }),
  infer: ([, , c]) => [c!],
  flops: ([a], [out], { transposeA }) =>
    2 * sizeOf(out!.shape) * a!.shape.at(transposeA ? 0 : 1)! + sizeOf(out!.shape),
  decompose: ([a, b, c], { transposeA, transposeB, alpha }) => {
    const product = tf.matMul(a!, b!, transposeA as boolean, transposeB as boolean);
    return [tf.add(tf.mul(product, alpha as number), c!)];
  },
});
