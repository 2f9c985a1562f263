/** @file Convolutions against plain loops, and their gradients against finite differences. */
import { expect, test } from 'vitest';
import type { tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  type BaseConvolution,
  Constant,
  Conv1D,
  Conv2D,
  Conv2DTranspose,
  Conv3D,
  initVariables,
  listVariables,
  SeparableConv2D,
  WeightNormL2,
} from '../../../src/layers/index.js';
import { checkGradients, expectClose, initialTheta, randomTheta, run, tensor } from '../helpers.js';
import { convolve, type Shape } from './plainConvolution.js';

const images = [2, 5, 6, 3] as const;
const twoD = (fields: object = {}) => Conv2D.config({ filterShape: [3, 2, 3, 4], bias: true, ...fields });
const plain = { stride: [1, 1], dilations: [1, 1] };

const cases: [string, Config<BaseConvolution>, readonly number[], Shape][] = [
  ["Conv2D, 'SAME'", twoD(), images, { ...plain, before: [1, 0], outputs: [5, 6] }],
  ["Conv2D, 'VALID'", twoD({ padding: 'VALID' }), images, { ...plain, before: [0, 0], outputs: [3, 5] }],
  [
    'Conv2D, strides',
    twoD({ filterStride: [2, 3] }),
    images,
    { stride: [2, 3], dilations: [1, 1], before: [1, 0], outputs: [3, 2] },
  ],
  [
    'Conv2D, strides, padded as by TensorFlow',
    twoD({ filterStride: [2, 2], tfEquivalentPadding: true }),
    images,
    { stride: [2, 2], dilations: [1, 1], before: [1, 0], outputs: [3, 3] },
  ],
  [
    'Conv2D, dilations',
    twoD({ dilations: [2, 3] }),
    images,
    { stride: [1, 1], dilations: [2, 3], before: [2, 1], outputs: [5, 6] },
  ],
  [
    'Conv2D, causal',
    twoD({ isCausal: true, filterStride: [2, 1] }),
    images,
    { stride: [2, 1], dilations: [1, 1], before: [2, 0], outputs: [3, 6] },
  ],
  [
    'Conv2D, depthwise',
    Conv2D.config({ filterShape: [3, 3, 1, 6], bias: true, filterStride: [2, 2] }),
    images,
    { stride: [2, 2], dilations: [1, 1], before: [1, 1], outputs: [3, 3] },
  ],
  [
    'Conv2D, two groups',
    Conv2D.config({ filterShape: [3, 3, 2, 6], bias: true }),
    [2, 3, 4, 4],
    { ...plain, before: [1, 1], outputs: [3, 4] },
  ],
  [
    'Conv1D',
    Conv1D.config({ filterShape: [3, 2, 4], bias: true, filterStride: [2] }),
    [2, 7, 2],
    { stride: [2], dilations: [1], before: [1], outputs: [4] },
  ],
  [
    'Conv1D, causal, dilations',
    Conv1D.config({ filterShape: [3, 2, 4], bias: true, isCausal: true, dilations: [2] }),
    [2, 7, 2],
    { stride: [1], dilations: [2], before: [4], outputs: [7] },
  ],
  [
    'Conv3D',
    Conv3D.config({ filterShape: [3, 2, 3, 2, 3], bias: true, filterStride: [2, 1, 2] }),
    [2, 5, 3, 4, 2],
    { stride: [2, 1, 2], dilations: [1, 1, 1], before: [1, 0, 1], outputs: [3, 3, 2] },
  ],
  [
    "Conv3D, 'VALID'",
    Conv3D.config({ filterShape: [2, 2, 1, 2, 3], bias: true, padding: 'VALID' }),
    [2, 3, 3, 2, 2],
    { stride: [1, 1, 1], dilations: [1, 1, 1], before: [0, 0, 0], outputs: [2, 2, 2] },
  ],
  [
    'Conv3D, causal, dilations, depthwise',
    Conv3D.config({ filterShape: [2, 2, 1, 1, 4], bias: true, isCausal: true, dilations: [3, 2, 1] }),
    [1, 4, 3, 2, 2],
    { stride: [1, 1, 1], dilations: [3, 2, 1], before: [3, 1, 0], outputs: [4, 3, 2] },
  ],
];

test.each(cases)('%s', (_, config, inputShape, shape) => {
  const layer = build(config);
  const theta = randomTheta(layer);
  const x = tensor([...inputShape]);
  const outputs = run(theta, () => layer.fprop(x));
  const depth = theta.b!.size;
  expect(outputs.shape).toEqual([inputShape[0], ...shape.outputs, depth]);
  const b = theta.b!.dataSync();
  expectClose(
    outputs,
    convolve(x, theta.w!, shape).map((sum, i) => sum + b[i % depth]!),
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!), { probes: 2 });
});

test("padding by the filter less one cell, or as TensorFlow does, differ where strides leave the last window's cells over", () => {
  const x = tensor([1, 6, 6, 1]);
  const [pax, tensorflow] = [false, true].map((tfEquivalentPadding) => {
    const layer = build(
      Conv2D.config({ filterShape: [3, 3, 1, 1], filterStride: [2, 2], tfEquivalentPadding }),
    );
    const theta = { w: tensor([3, 3, 1, 1], 5) };
    return { outputs: run(theta, () => layer.fprop(x)), w: theta.w };
  });
  const shape = { stride: [2, 2], dilations: [1, 1], outputs: [3, 3] };
  expectClose(pax!.outputs, convolve(x, pax!.w, { ...shape, before: [1, 1] }));
  expectClose(tensorflow!.outputs, convolve(x, tensorflow!.w, { ...shape, before: [0, 0] }));
});

test('the filter goes through weightNormTpl', () => {
  const filterShape = [3, 2, 3, 4] as [number, number, number, number];
  const layer = build(Conv2D.config({ filterShape, weightNormTpl: WeightNormL2.config() }));
  const theta = randomTheta(layer);
  const norm = build(WeightNormL2.config({ dim: 4 }));
  const w = run({ g: theta['weight_norm/g']! }, () => norm.fprop(theta.w!));
  const x = tensor([...images]);
  const outputs = run(theta, () => layer.fprop(x));
  expectClose(outputs, convolve(x, w, { ...plain, before: [1, 0], outputs: [5, 6] }));
  checkGradients(layer, [x], (input) => layer.fprop(input!), { probes: 2 });
});

/** The sum of a · b: a transposed convolution is the adjoint of the convolution. */
const inner = (a: tf.Tensor, b: ArrayLike<number>): number =>
  [...a.dataSync()].reduce((sum, x, i) => sum + x * b[i]!, 0);

test.each([
  ["'SAME'", 'SAME', [3, 3], [2, 2], [8, 10], [0, 0]],
  ["'VALID'", 'VALID', [3, 2], [2, 1], [9, 6], [0, 0]],
  ['filters as large as strides', 'VALID', [2, 2], [2, 2], [8, 10], [0, 0]],
] as const)(
  'Conv2DTranspose, %s: <convolve(y), x> = <y, transposed(x)>',
  (_, padding, window, stride, cells, before) => {
    const layer = build(
      Conv2DTranspose.config({ filterShape: [...window, 3, 2], filterStride: [...stride], padding }),
    );
    const theta = randomTheta(layer);
    const x = tensor([2, 4, 5, 2]);
    const y = tensor([2, ...cells, 3], 9);
    const transposed = run(theta, () => layer.fprop(x));
    expect(transposed.shape).toEqual(y.shape);
    const shape = { stride, dilations: [1, 1], before, outputs: [4, 5] };
    expect(inner(y, transposed.dataSync())).toBeCloseTo(inner(x, convolve(y, theta.w!, shape)), 3);
    checkGradients(layer, [x], (input) => layer.fprop(input!), { probes: 2 });
  },
);

test('the bias of a transposed convolution is added to each cell; its fans are those of its outputs and inputs', () => {
  const layer = build(
    Conv2DTranspose.config({ filterShape: [2, 2, 3, 5], filterStride: [2, 2], bias: true, biasInit: 0.5 }),
  );
  const theta = initialTheta(layer);
  const largest = Math.max(...theta.w!.dataSync().map(Math.abs));
  expect(largest).toBeLessThanOrEqual(Math.sqrt(6 / (4 * (3 + 5))) * 1.00001);
  const outputs = run(theta, () => layer.fprop(tensor([1, 2, 2, 5])));
  const without = run({ ...theta, b: tensor([3], 2) }, () => layer.fprop(tensor([1, 2, 2, 5])));
  const b = tensor([3], 2).dataSync();
  expectClose(
    outputs,
    [...without.dataSync()].map((value, i) => value - b[i % 3]! + 0.5),
  );
});

test('SeparableConv2D is a depthwise convolution, then one over single cells', () => {
  const layer = build(
    SeparableConv2D.config({
      filterShape: [3, 3, 3, 4],
      channelMultiplier: 2,
      filterStride: [2, 2],
      bias: true,
    }),
  );
  const theta = randomTheta(layer);
  const x = tensor([...images]);
  const outputs = run(theta, () => layer.fprop(x));
  const depthwise = { stride: [2, 2], dilations: [1, 1], before: [1, 1], outputs: [3, 3] };
  const between = tensor([2, 3, 3, 6]);
  between.dataSync().set(convolve(x, theta['depthwise/w']!, depthwise));
  const mixed = convolve(between, theta['pointwise/w']!, { ...depthwise, stride: [1, 1], before: [0, 0] });
  const b = theta['pointwise/b']!.dataSync();
  expectClose(
    outputs,
    mixed.map((sum, i) => sum + b[i % 4]!),
  );
});

test('variables: without a bias there is one; fan-in and fan-out count the receptive field; kernelInit is for the filter', () => {
  const layer = build(Conv2D.config({ filterShape: [3, 3, 4, 8] }));
  expect(listVariables(layer).map(({ path, shape }) => `${path} ${shape}`)).toEqual(['w 3,3,4,8']);
  const limit = Math.sqrt(6 / (9 * (4 + 8)));
  const values = initVariables(layer, 3).get('w')!;
  expect(Math.max(...values)).toBeLessThanOrEqual(limit * 1.00001);
  expect(Math.max(...values)).toBeGreaterThan(limit * 0.95);
  const withBias = build(
    Conv2D.config({
      filterShape: [1, 1, 1, 2],
      bias: true,
      biasInit: 0.5,
      kernelInit: Constant.config({ scale: 3 }),
    }),
  );
  expect([...initVariables(withBias, 3).get('b')!]).toEqual([0.5, 0.5]);
  expect([...initVariables(withBias, 3).get('w')!]).toEqual([3, 3]);
});

test.each([
  [
    () => build(Conv2D.config({ filterShape: [3, 3, 1, 1], filterStride: [2, 1], dilations: [1, 2] })),
    'model (Conv2D): filterStride [2, 1] with dilations [1, 2]: one of them has to be [1, 1].',
  ],
  [
    () => build(Conv1D.config({ filterShape: [3, 1, 1], isCausal: true, padding: 'VALID' })),
    "model (Conv1D): isCausal pads in front, and padding is 'VALID'; expected 'SAME'.",
  ],
  [
    () => applied(Conv2D.config({ filterShape: [3, 3, 2, 1] }), [1, 4, 4, 3]),
    'model (Conv2D): inputs [1, 4, 4, 3] do not fit filterShape [3, 3, 2, 1]: expected rank 4 and depth 2, or a ' +
      'multiple of it by a divisor of 1.',
  ],
  [
    () => applied(Conv3D.config({ filterShape: [1, 3, 3, 2, 1] }), [1, 4, 4, 2]),
    'model (Conv3D): inputs [1, 4, 4, 2] do not fit filterShape [1, 3, 3, 2, 1]: expected rank 5 and depth 2, or a ' +
      'multiple of it by a divisor of 1.',
  ],
  [
    () => applied(Conv1D.config({ filterShape: [3, 2, 1], padding: 'VALID' }), [1, 2, 2]),
    "model (Conv1D): inputs [1, 2, 2] have 2 cells along axis 1, and a window has 3; padding 'VALID' has no window.",
  ],
  [
    () => applied(Conv2DTranspose.config({ filterShape: [2, 2, 1, 2] }), [1, 4, 4, 3]),
    'model (Conv2DTranspose): inputs [1, 4, 4, 3] do not fit filterShape [2, 2, 1, 2]: expected [B, H, W, 2].',
  ],
])('refused: %#', (act, message) => {
  expect(act).toThrow(message);
});

function applied(config: Config<BaseConvolution | Conv2DTranspose>, shape: number[]): tf.Tensor {
  const layer = build(config);
  return run(randomTheta(layer), () => layer.fprop(tensor(shape)));
}
