/** @file Conv2D against plain loops, and its gradients against finite differences. */
import { expect, test } from 'vitest';
import { tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import { Conv2D, initVariables, listVariables, runInContext } from '../../../src/layers/index.js';
import { checkGradients, expectClose, randomTheta, run, tensor } from '../helpers.js';

interface Shape {
  readonly stride: readonly [number, number];
  readonly dilations: readonly [number, number];
  /** Cells of padding in front. */
  readonly before: readonly [number, number];
  readonly outputs: readonly [number, number];
}

/** x [B, H, W, I] by w [h, w, I, O], one multiplication after the other. */
function convolve(x: tf.Tensor, w: tf.Tensor, { stride, dilations, before, outputs }: Shape): number[] {
  const [B, H, W, I] = x.shape as [number, number, number, number];
  const [height, width, , O] = w.shape as [number, number, number, number];
  const [values, weights] = [x.dataSync(), w.dataSync()];
  const sums: number[] = [];
  for (let b = 0; b < B; b++)
    for (let i = 0; i < outputs[0]; i++)
      for (let j = 0; j < outputs[1]; j++)
        for (let o = 0; o < O; o++) {
          let sum = 0;
          for (let p = 0; p < height; p++)
            for (let q = 0; q < width; q++) {
              const row = i * stride[0] + p * dilations[0] - before[0];
              const column = j * stride[1] + q * dilations[1] - before[1];
              if (row < 0 || row >= H || column < 0 || column >= W) continue;
              for (let c = 0; c < I; c++)
                sum +=
                  values[((b * H + row) * W + column) * I + c]! * weights[((p * width + q) * I + c) * O + o]!;
            }
          sums.push(sum);
        }
  return sums;
}

const plain = { stride: [1, 1], dilations: [1, 1] } as const;

test.each([
  ["'SAME'", {}, { ...plain, before: [1, 0], outputs: [5, 6] }],
  ["'VALID'", { padding: 'VALID' }, { ...plain, before: [0, 0], outputs: [3, 5] }],
  [
    'strides',
    { filterStride: [2, 3] },
    { stride: [2, 3], dilations: [1, 1], before: [1, 0], outputs: [3, 2] },
  ],
  [
    'strides, padded as by TensorFlow',
    { filterStride: [2, 2], tfEquivalentPadding: true },
    { stride: [2, 2], dilations: [1, 1], before: [1, 0], outputs: [3, 3] },
  ],
  [
    'dilations',
    { dilations: [2, 3] },
    { stride: [1, 1], dilations: [2, 3], before: [2, 1], outputs: [5, 6] },
  ],
] as const)('Conv2D: %s', (_, fields, shape) => {
  const layer = build(Conv2D.config({ filterShape: [3, 2, 3, 4], bias: true, ...(fields as object) }));
  const theta = randomTheta(layer);
  const x = tensor([2, 5, 6, 3]);
  const outputs = run(theta, () => layer.fprop(x));
  expect(outputs.shape).toEqual([2, ...shape.outputs, 4]);
  const b = theta.b!.dataSync();
  expectClose(
    outputs,
    convolve(x, theta.w!, shape as Shape).map((sum, i) => sum + b[i % 4]!),
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!));
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
  const shape = { stride: [2, 2], dilations: [1, 1], outputs: [3, 3] } as const;
  expectClose(pax!.outputs, convolve(x, pax!.w, { ...shape, before: [1, 1] }));
  expectClose(tensorflow!.outputs, convolve(x, tensorflow!.w, { ...shape, before: [0, 0] }));
});

test('variables: without a bias there is one; fan-in and fan-out count the receptive field', () => {
  const layer = build(Conv2D.config({ filterShape: [3, 3, 4, 8] }));
  expect(listVariables(layer).map(({ path, shape }) => `${path} ${shape}`)).toEqual(['w 3,3,4,8']);
  const limit = Math.sqrt(6 / (9 * (4 + 8)));
  const values = initVariables(layer, 3).get('w')!;
  expect(Math.max(...values)).toBeLessThanOrEqual(limit * 1.00001);
  expect(Math.max(...values)).toBeGreaterThan(limit * 0.95);
  const withBias = build(Conv2D.config({ filterShape: [1, 1, 1, 2], bias: true, biasInit: 0.5 }));
  expect([...initVariables(withBias, 3).get('b')!]).toEqual([0.5, 0.5]);
});

test('strides and dilations at once are refused, and so are inputs of another depth', () => {
  expect(() =>
    build(Conv2D.config({ filterShape: [3, 3, 1, 1], filterStride: [2, 1], dilations: [1, 2] })),
  ).toThrow('model (Conv2D): filterStride [2, 1] with dilations [1, 2]: one of them has to be [1, 1].');
  const layer = build(Conv2D.config({ filterShape: [3, 3, 2, 1] }));
  expect(() =>
    runInContext({ theta: randomTheta(layer) }, () => layer.fprop(tf.zeros([1, 4, 4, 3]))),
  ).toThrow(
    'model (Conv2D): fprop: Error in conv2d: depth of input (3) must match input depth for filter 2.',
  );
});
