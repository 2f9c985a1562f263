/** @file Decompositions of kernels that add a bias and apply an activation to a product. */
import { expects, type RawAttrs } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { type Decomposition, type DecompositionTable, runKernel } from './decomposition.js';

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

/** A value by channel, such that it broadcasts: a list stands for channels, wherever these are. */
const byChannel = (value: tf.Tensor, { dataFormat }: RawAttrs): tf.Tensor =>
  dataFormat === 'NCHW' && value.rank === 1 && value.size > 1 ? tf.reshape(value, [-1, 1, 1]) : value;

/** A product, its bias and its activation. */
const fused =
  (product: Decomposition): Decomposition =>
  (inputs, attrs) => {
    const { bias, preluActivationWeights } = inputs;
    const { activation, leakyreluAlpha } = attrs;
    const activate = ACTIVATIONS[activation ?? 'linear'];
    expects(activate !== undefined, `an activation out of ${Object.keys(ACTIVATIONS)}`, activation);
    const made = product(inputs, attrs) as tf.Tensor;
    const prelu = preluActivationWeights && byChannel(preluActivationWeights, attrs);
    return activate(bias ? tf.add(made, byChannel(bias, attrs)) : made, prelu!, leakyreluAlpha);
  };

const convolution =
  (kernel: string): Decomposition =>
  ({ x, filter }, { strides, pad, dataFormat, dilations, dimRoundingMode }) =>
    runKernel(
      kernel,
      { x: x!, filter: filter! },
      { strides, pad, dataFormat, dilations: dilations ?? 1, dimRoundingMode },
    );

export const fusedDecompositions: DecompositionTable = {
  _FusedMatMul: fused(({ a, b }, { transposeA, transposeB }) => tf.matMul(a!, b!, transposeA, transposeB)),
  FusedConv2D: fused(convolution('Conv2D')),
  FusedDepthwiseConv2D: fused(convolution('DepthwiseConv2dNative')),
};
