/** @file Convolutions over sequences with padding: depthwise, light, and those with norm and activation. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import {
  ConvBNAct,
  ConvBNActWithPadding,
  DepthwiseConv1D,
  GroupNorm,
  LightConv1D,
  listVariables,
} from '../../../src/layers/index.js';
import { expectClose, randomTheta, run, tensor } from '../helpers.js';
import { parameterCount, sineInput, sineTheta, sums } from '../sineFill.js';
import { convolve } from './plainConvolution.js';

const paddings = tf.tensor2d([0, 0, 0, 1, 1, 0, 0, 0, 0, 0], [2, 5]) as Tensor;

/** x [B, 5, ...] with a value in the padded places. */
const filled = (x: Tensor, value: number): Tensor => {
  const batch = x.shape[0]!;
  const padded = tf.greater(tf.slice(paddings, [0, 0], [batch, 5]), 0.5);
  const rows = tf.reshape(padded, [batch, 5, ...x.shape.slice(2).map(() => 1)]);
  return tf.where(tf.broadcastTo(rows, x.shape), tf.fill(x.shape, value), x) as Tensor;
};

test.each([
  ['around', {}, [2, 1], [1]],
  ['causal', { isCausal: true }, [2, 1], [2]],
  ['causal, dilated', { isCausal: true, rhsDilationRate: 2, use2dConvWeightShape: true }, [2, 2], [4]],
] as const)('DepthwiseConv1D, %s', (_, fields, [, dilation], before) => {
  const layer = build(DepthwiseConv1D.config({ filterShape: [3, 4, 2], bias: true, ...fields }));
  const theta = randomTheta(layer);
  const x = tensor([2, 5, 4]);
  const outputs = run(theta, () => layer.fprop(filled(x, Number.NaN), paddings));
  const w = tf.reshape(theta.w!, [3, 1, 8]) as Tensor;
  const b = theta.b!.dataSync();
  const shape = { stride: [1], dilations: [dilation], before, outputs: [5] };
  expectClose(
    outputs,
    convolve(filled(x, 0), w, shape).map((sum, i) => sum + b[i % 8]!),
  );
});

test('the variables of a causal LightConv1D, and the output that Pax publishes', () => {
  const layer = build(LightConv1D.config({ inputDims: 16, kernelSize: 3, isCausal: true }));
  expect(parameterCount(layer)).toBe(928);
  const outputs = run(sineTheta(layer), () => layer.fprop(sineInput([2, 8, 16])), { doEval: true });
  expect(sums(outputs).q).toBeCloseTo(128.602, 3);
});

test('GroupNorm gives the output that Pax publishes', () => {
  const layer = build(GroupNorm.config({ dim: 16, numGroups: 4 }));
  const padded = tf.tensor2d([...Array(8).fill(0), ...Array(5).fill(0), 1, 1, 1], [2, 8]) as Tensor;
  const outputs = run(sineTheta(layer), () => layer.fprop(sineInput([2, 8, 16]), padded));
  expect(sums(outputs).q).toBeCloseTo(213.525944, 4);
  expect([...tf.slice(outputs, [1, 5, 0], [1, 3, 16]).dataSync()].every((x) => x === 0)).toBe(true);
});

test.each([false, true])('LightConv1D, causal: %s, sees no padding', (isCausal) => {
  const layer = build(LightConv1D.config({ inputDims: 4, kernelSize: 3, isCausal, use2dConvNorm: isCausal }));
  const theta = randomTheta(layer);
  const x = tensor([2, 5, 4]);
  const call = (x: Tensor, padding: Tensor): Tensor => run(theta, () => layer.fprop(x, padding));
  const short = call(tf.slice(x, [0, 0, 0], [1, 3, 4]) as Tensor, tf.zeros([1, 3]));
  const outputs = call(
    filled(tf.slice(x, [0, 0, 0], [1, 5, 4]), 7) as Tensor,
    tf.slice(paddings, [0, 0], [1, 5]),
  );
  expectClose(tf.slice(outputs, [0, 0, 0], [1, 3, 4]), short.dataSync(), 1e-4);
});

test('a causal LightConv1D sees nothing later', () => {
  const layer = build(LightConv1D.config({ inputDims: 4, kernelSize: 3, isCausal: true }));
  const theta = randomTheta(layer);
  const x = tensor([1, 6, 4]);
  const call = (x: Tensor): Tensor => run(theta, () => layer.fprop(x), { doEval: true });
  const first = tf.slice(x, [0, 0, 0], [1, 4, 4]) as Tensor;
  expectClose(tf.slice(call(x), [0, 0, 0], [1, 4, 4]), call(first).dataSync());
});

test('ConvBNAct is a convolution, a norm and an activation', () => {
  const layer = build(ConvBNAct.config({ filterShape: [3, 3, 2, 4], filterStride: [2, 2] }));
  expect(listVariables(layer).map(({ path }) => path)).toEqual([
    'w',
    'bn/beta',
    'bn/gamma',
    'bn/moving_mean',
    'bn/moving_variance',
  ]);
  const theta = randomTheta(layer);
  theta['bn/moving_variance'] = tf.add(tf.abs(theta['bn/moving_variance']!), 1);
  const x = tensor([2, 4, 4, 2]);
  const outputs = run(theta, () => layer.fprop(x), { doEval: true });
  const parts = ['beta', 'gamma', 'moving_mean', 'moving_variance'].map((name) =>
    theta[`bn/${name}`]!.dataSync(),
  );
  const [beta, gamma, mean, variance] = parts as [Float32Array, Float32Array, Float32Array, Float32Array];
  const shape = { stride: [2, 2], dilations: [1, 1], before: [1, 1], outputs: [2, 2] };
  expectClose(
    outputs,
    convolve(x, theta.w!, shape).map((sum, i) => {
      const d = i % 4;
      return Math.max(((sum - mean[d]!) / Math.sqrt(variance[d]! + 1e-3)) * (1 + gamma[d]!) + beta[d]!, 0);
    }),
  );
});

const filterShape = [3, 3, 2, 4] as [number, number, number, number];
test.each([
  ["'SAME'", { filterShape }, [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]],
  ['strides', { filterShape, filterStride: [2, 1] }, [0, 0, 1, 0, 0, 0]],
  ['strides as in Lingvo', { filterShape, filterStride: [2, 1], compatWithLingvo: true }, [0, 1, 1, 0, 0, 1]],
  ["'VALID'", { filterShape, padding: 'VALID' }, [0, 0, 0, 0, 0, 0]],
  ["'VALID', a window of two", { filterShape: [2, 3, 2, 4], padding: 'VALID' }, [0, 0, 0, 1, 0, 0, 0, 0]],
] as const)(
  'ConvBNActWithPadding, %s: padding has no effect and is 0 in the outputs',
  (_, fields, expected) => {
    const layer = build(ConvBNActWithPadding.config(fields as never)) as ConvBNActWithPadding;
    const theta = randomTheta(layer);
    const x = tensor([2, 5, 4, 2]);
    const ofOutputs = layer.outputPaddings(paddings);
    expect([...ofOutputs.dataSync()].map(Math.abs)).toEqual([...expected]);
    const call = (value: number): Tensor => run(theta, () => layer.fprop(filled(x, value), paddings));
    const outputs = call(0);
    expect(outputs.shape.slice(0, 2)).toEqual(ofOutputs.shape);
    expectClose(call(Number.NaN), outputs.dataSync());
    const padded = tf.mul(outputs, tf.reshape(ofOutputs, [...ofOutputs.shape, 1, 1]));
    expect(tf.max(tf.abs(padded)).dataSync()[0]).toBe(0);
  },
);

test('the norm of ConvBNActWithPadding counts no padding: a row without it changes nothing', () => {
  const layer = build(ConvBNActWithPadding.config({ filterShape: [1, 1, 2, 4] }));
  const theta = randomTheta(layer);
  const x = tensor([1, 5, 4, 2]);
  const whole = run(theta, () => layer.fprop(x));
  const longer = tf.concat([x, tensor([1, 3, 4, 2], 5)], 1) as Tensor;
  const padded = run(theta, () => layer.fprop(longer, tf.tensor2d([0, 0, 0, 0, 0, 1, 1, 1], [1, 8])));
  expectClose(tf.slice(padded, [0, 0, 0, 0], [1, 5, 4, 4]), whole.dataSync());
});

test('dimensions that do not fit are refused', () => {
  const depthwise = build(DepthwiseConv1D.config({ filterShape: [3, 4, 1] }));
  expect(() => run(randomTheta(depthwise), () => depthwise.fprop(tensor([2, 5, 3])))).toThrow(
    'model (DepthwiseConv1D): inputs [2, 5, 3] do not fit filterShape [3, 4, 1]: expected [B, T, 4].',
  );
  expect(() =>
    build(ConvBNActWithPadding.config({ filterShape, dilations: [2, 1], compatWithLingvo: true })),
  ).toThrow('model (ConvBNActWithPadding): compatWithLingvo with dilations [2, 1]: expected [1, 1].');
});
