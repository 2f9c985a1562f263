/** @file Decompositions of kernels that add a bias and apply an activation to a product. */
import { expects } from '../rules/rule.js';
import * as tf from '../tfjs.js';
import type { Decomposition, DecompositionTable } from './decomposition.js';

/** The activations that fused kernels apply, by tfjs's names. */
const ACTIVATIONS: Readonly<Record<string, (x: tf.Tensor, prelu: tf.Tensor, alpha: number) => tf.Tensor>> = {
  linear: (x) => x,
  relu: (x) => tf.relu(x),
  relu6: (x) => tf.relu6(x),
  elu: (x) => tf.elu(x),
  sigmoid: (x) => tf.sigmoid(x),
  prelu: (x, prelu) => tf.prelu(x, prelu),
  leakyrelu: (x, _, alpha) => tf.leakyRelu(x, alpha),
};

/** A product, its bias and its activation. */
const fused =
  (product: Decomposition): Decomposition =>
  (inputs, attrs) => {
    const { bias, preluActivationWeights } = inputs;
    const { activation = 'linear', leakyreluAlpha } = attrs;
    const activate = ACTIVATIONS[activation];
    expects(activate !== undefined, `an activation out of ${Object.keys(ACTIVATIONS)}`, activation);
    const made = product(inputs, attrs) as tf.Tensor;
    return activate(bias ? tf.add(made, bias) : made, preluActivationWeights!, leakyreluAlpha);
  };

export const fusedDecompositions: DecompositionTable = {
  _FusedMatMul: fused(({ a, b }, { transposeA, transposeB }) => tf.matMul(a!, b!, transposeA, transposeB)),
};
