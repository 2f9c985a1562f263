/** @file Matrix product plus matrix, the form of residual connections and sums of gradients. */

import { matMulAdd } from '../onnx/productLowerings.js';
import { precisionAttr } from '../program/precision.js';
import { sameShape, sizeOf } from '../program/tensors.js';
import { defineOperation } from '../rules/index.js';
import { expects, expectsDtypes, FLOAT, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';

/** alpha * op(a) op(b) + c, for matrices; c has the product's shape. Only a pass creates it. */
defineOperation('MatMulAdd', {
  inputs: ['a', 'b', 'c'],
  isProduct: true,
  attrs: (raw) => ({
    transposeA: raw.transposeA,
    transposeB: raw.transposeB,
    alpha: raw.alpha,
    ...precisionAttr(raw),
  }),
  infer: ([a, b, c], { transposeA, transposeB }) => {
    expectsDtypes([a!, b!, c!], FLOAT);
    const [rows, inner] = transposeA ? a!.shape.toReversed() : a!.shape;
    const [innerB, columns] = transposeB ? b!.shape.toReversed() : b!.shape;
    const isProduct = [a!, b!].every(({ shape }) => shape.length === 2) && inner === innerB;
    expects(isProduct && sameShape(c!.shape, [rows!, columns!]), 'matrices a, b, and c like their product', [
      a,
      b,
      c,
    ]);
    return [spec(c!.shape, 'float32')];
  },
  flops: ([a], [out], { transposeA }) =>
    2 * sizeOf(out!.shape) * a!.shape.at(transposeA ? 0 : 1)! + sizeOf(out!.shape),
  device: { kind: 'product' },
  onnx: matMulAdd,
  decompose: ([a, b, c], { transposeA, transposeB, alpha }) => {
    const product = tf.matMul(a!, b!, transposeA as boolean, transposeB as boolean);
    return [tf.add(tf.mul(product, alpha as number), c!)];
  },
});
