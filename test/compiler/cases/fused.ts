/** @file Cases of kernels that add a bias and apply an activation. */
import type { HostTensor } from '../../../src/compiler/index.js';
import { tf } from '../../../src/compiler/index.js';
import { floats } from '../values.js';
import { type Case, type CaseFunction, type CaseTable, constant, over } from './case.js';

const ACTIVATIONS = ['linear', 'relu', 'relu6', 'elu', 'sigmoid', 'leakyrelu'] as const;

const matrices = [floats([2, 3, 4], -2, 2, 1), floats([2, 4, 5], -2, 2, 2), floats([5], -1, 1, 3)];

/** [x, filter, bias] of a convolution, and of a depthwise one. */
const image = [floats([2, 5, 6, 3], -2, 2, 1), floats([3, 2, 3, 4], -1, 1, 2), floats([4], -1, 1, 3)];
const channels = [floats([2, 5, 6, 3], -2, 2, 1), floats([3, 2, 3, 2], -1, 1, 2), floats([6], -1, 1, 3)];

const conv =
  (rest: object): CaseFunction =>
  (x, filter, bias) =>
    tf.fused.conv2d({ x, filter, strides: 1, pad: 'same', ...(bias && { bias }), ...rest });

const depthwise =
  (rest: object): CaseFunction =>
  (x, filter, bias) =>
    tf.fused.depthwiseConv2d({ x, filter, strides: 1, pad: 'same', ...(bias && { bias }), ...rest });

const toFirst: CaseFunction = (x) => tf.transpose(x, [0, 3, 1, 2]);
const toLast: CaseFunction = (x) => tf.transpose(x, [0, 2, 3, 1]);

const activated = (f: (rest: object) => CaseFunction, inputs: HostTensor[]): Case[] =>
  ACTIVATIONS.flatMap((activation) => over(f({ activation, leakyreluAlpha: 0.3 }), [inputs], constant));

export const fusedCases: CaseTable = {
  _FusedMatMul: [
    ...over((a, b, bias) => tf.fused.matMul({ a, b, bias }), [matrices]),
    ...ACTIVATIONS.flatMap((activation) =>
      over(
        (a, b, bias) => tf.fused.matMul({ a, b, bias, activation, leakyreluAlpha: 0.3 }),
        [matrices],
        constant,
      ),
    ),
    ...over(
      (a, b) => tf.fused.matMul({ a, b, transposeA: true, activation: 'relu' }),
      [[floats([4, 3]), floats([4, 2])]],
      constant,
    ),
  ],
  FusedConv2D: [
    ...over(conv({}), [image, image.slice(0, 2)]),
    ...over(conv({ strides: [2, 1], pad: 'valid' }), [image]),
    ...activated(conv, image),
    ...over(conv({ dilations: 2 }), [image], constant),
    // A bias of another rank, and one for every channel.
    ...over(
      conv({}),
      [
        [...image.slice(0, 2), floats([])],
        [...image.slice(0, 2), floats([1, 6, 4])],
      ],
      constant,
    ),
    ...over(
      // tfjs takes no activation for this order of axes while gradients are recorded.
      (x, filter, bias) => toLast(conv({ dataFormat: 'NCHW' })(toFirst(x), filter, bias)),
      [image, [...image.slice(0, 2), floats([])]],
      { ...constant, oracle: conv({}) },
    ),
    ...over(
      (x, filter, bias, alpha) =>
        conv({ activation: 'prelu', preluActivationWeights: alpha })(x, filter, bias),
      [
        [...image, floats([4])],
        [...image, floats([])],
        [...image, floats([5, 6, 4])],
      ],
      constant,
    ),
    ...over(conv({ strides: 2, pad: 1, dimRoundingMode: 'ceil' }), [image], constant),
  ],
  FusedDepthwiseConv2D: [
    ...over(depthwise({}), [channels, channels.slice(0, 2)]),
    ...activated(depthwise, channels),
    ...over(depthwise({ dilations: [1, 2], pad: 'valid' }), [channels], constant),
  ],
};
