/** @file Layer norm, RMS norm and batch norm against their formulas. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  BatchNorm,
  type ContextOptions,
  IdentityNorm,
  LayerError,
  LayerNorm,
  listVariables,
  RmsNorm,
  WeightCollection,
} from '../../src/layers/index.js';
import { checkGradients, expectClose, initialTheta, randomTheta, run, tensor } from './helpers.js';

const DIM = 5;

/** Applies `f` to each row of x. */
function rows(x: ArrayLike<number>, f: (row: number[]) => number[]): number[] {
  const all = Array.from(x);
  const result: number[] = [];
  for (let i = 0; i < all.length; i += DIM) result.push(...f(all.slice(i, i + DIM)));
  return result;
}
const mean = (values: number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

test.each([
  [true, true],
  [true, false],
  [false, true],
  [false, false],
])('LayerNorm with directScale %s and useBias %s', (directScale, useBias) => {
  const epsilon = 1e-5;
  const layer = build(LayerNorm.config({ dim: DIM, epsilon, directScale, useBias }));
  const theta = randomTheta(layer);
  const x = tensor([2, 3, DIM]);
  const scale = theta.scale!.dataSync();
  const bias = useBias ? theta.bias!.dataSync() : new Float32Array(DIM);
  const expected = rows(x.dataSync(), (row) => {
    const m = mean(row);
    const variance = mean(row.map((value) => (value - m) ** 2));
    return row.map(
      (value, i) =>
        ((value - m) / Math.sqrt(variance + epsilon)) * (scale[i]! + (directScale ? 0 : 1)) + bias[i]!,
    );
  });
  expectClose(
    run(theta, () => layer.fprop(x)),
    expected,
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!));
});

test.each([true, false])('RmsNorm with directScale %s', (directScale) => {
  const layer = build(RmsNorm.config({ dim: DIM, epsilon: 1e-3, directScale }));
  const theta = randomTheta(layer);
  const x = tensor([4, DIM]);
  const scale = theta.scale!.dataSync();
  const expected = rows(x.dataSync(), (row) => {
    const rms = Math.sqrt(mean(row.map((value) => value ** 2)) + 1e-3);
    return row.map((value, i) => (value / rms) * (scale[i]! + (directScale ? 0 : 1)));
  });
  expectClose(
    run(theta, () => layer.fprop(x)),
    expected,
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!));
});

test('norms begin as plain normalisation whatever directScale is, and skip weight decay', () => {
  const x = tensor([2, DIM]);
  const outputs = [true, false].map((directScale) => {
    const layer = build(LayerNorm.config({ dim: DIM, directScale }));
    for (const { collections } of listVariables(layer)) {
      expect(collections).toEqual([WeightCollection.SKIP_LP_REGULARIZATION]);
    }
    return [...run(initialTheta(layer), () => layer.fprop(x)).dataSync()];
  });
  expect(outputs[0]).toEqual(outputs[1]);
});

test('LayerNorm without scale and bias has no variables; IdentityNorm returns its input', () => {
  expect(listVariables(build(LayerNorm.config({ dim: DIM, useScale: false, useBias: false })))).toEqual([]);
  const x = tensor([2, DIM]);
  expect(build(IdentityNorm.config({ dim: DIM })).fprop(x)).toBe(x);
});

/** Batch norm in training, with what it leaves in the moving averages. */
function batchNorm(
  values: Partial<Config<BatchNorm>>,
  x: Tensor,
  { paddings, ...options }: Omit<ContextOptions, 'theta'> & { paddings?: Tensor } = {},
) {
  const layer = build(BatchNorm.config({ dim: x.shape.at(-1)!, ...values }));
  const updatedVars: Record<string, Tensor> = {};
  const outputs = run(initialTheta(layer), () => layer.fprop(x, paddings), { updatedVars, ...options });
  const moved = (name: string) => [...(updatedVars[name]?.dataSync() ?? [])];
  return { outputs, mean: moved('moving_mean'), variance: moved('moving_variance') };
}

// The numbers of torch.nn.BatchNorm1d(2, momentum=0.1) for these inputs, but for its running variance, which counts N - 1:
// 1.0667 and 4.2333 there.
const column = tf.tensor2d([1, 10, 2, 10, 3, 20, 4, 20], [4, 2]);
const normalized = [-1.341635, -0.9999998, -0.447212, -0.9999998, 0.447212, 0.9999998, 1.341635, 0.9999998];

test('BatchNorm normalises by the batch in training, and moves its averages', () => {
  const { outputs, mean: means, variance } = batchNorm({ decay: 0.9, epsilon: 1e-5 }, column);
  expectClose(outputs, normalized);
  expectClose(tf.tensor1d(means), [0.25, 1.5]);
  expectClose(tf.tensor1d(variance), [0.9 + 0.125, 0.9 + 2.5]);
  const image = batchNorm({ decay: 0.9, epsilon: 1e-5 }, tf.reshape(column, [2, 1, 2, 2]));
  expectClose(image.outputs, normalized);
  expect([image.mean, image.variance]).toEqual([means, variance]);
});

test('BatchNorm normalises by the averages in evaluation, and leaves them alone', () => {
  const layer = build(BatchNorm.config({ dim: 2, epsilon: 1e-5 }));
  const theta = {
    gamma: tf.tensor1d([1, 0]),
    beta: tf.tensor1d([0, 3]),
    moving_mean: tf.tensor1d([2, 10]),
    moving_variance: tf.tensor1d([4, 25]),
  };
  const updatedVars: Record<string, Tensor> = {};
  const outputs = run(theta, () => layer.fprop(column), { doEval: true, updatedVars });
  expectClose(outputs, [-1, 3, 0, 3, 1, 5, 2, 5]);
  expect(updatedVars).toEqual({});
  const forced = batchNorm({ forceEvalMode: true }, column);
  expectClose(
    forced.outputs,
    [...column.dataSync()].map((x) => x / Math.sqrt(1.001)),
  );
  expect(forced.mean).toEqual([]);
});

test('BatchNorm counts no padding', () => {
  const padded = tf.concat([tf.reshape(column, [2, 2, 2]), tf.fill([2, 1, 2], 99)], 1);
  const paddings = tf.tensor2d([0, 0, 1, 0, 0, 1], [2, 3]);
  const { outputs, mean: means, variance } = batchNorm({ decay: 0.9, epsilon: 1e-5 }, padded, { paddings });
  expectClose(tf.slice(outputs, [0, 0, 0], [2, 2, 2]), normalized);
  expectClose(tf.slice(outputs, [0, 2, 0], [2, 1, 2]), [0, 0, 0, 0]);
  expectClose(tf.tensor1d([...means, ...variance]), [0.25, 1.5, 1.025, 3.4]);
  const all = batchNorm({ decay: 0.9 }, padded, { paddings: tf.ones([2, 3]) });
  // Nothing counts, and so nothing moves.
  expect([...all.mean, ...all.variance]).toEqual([0, 0, 1, 1]);
});

test('BatchNorm counts what its paddings broadcast to, and refuses those that do not fit', () => {
  const x = tf.tensor4d([3, 4, 2, 1e9, Number.NaN, 8, 5, 4, 3], [1, 3, 3, 1]);
  const paddings = tf.tensor3d([0, 1, 0], [1, 3, 1]);
  const { mean: means } = batchNorm({ decay: 0 }, x, { paddings });
  expectClose(tf.tensor1d(means), [3.5]);
  expect(() => batchNorm({}, x, { paddings: tf.zeros([3, 3]) })).toThrow(
    new LayerError(
      '',
      'BatchNorm',
      'paddings [3, 3] do not fit the inputs: expected [1, 3, 3], or 1 in place of a size.',
    ),
  );
});

test('rows of weight 0 count in no statistic of a batch, whatever their positions weigh', () => {
  const x = tf.concat([tf.reshape(column, [2, 2, 2]), tf.fill([1, 2, 2], Number.NaN)], 0);
  const expected = batchNorm({ decay: 0.9, epsilon: 1e-5 }, tf.reshape(column, [2, 2, 2]));
  for (const rowWeights of [tf.tensor1d([1, 0.5, 0]), tf.tensor2d([1, 0, 0, 1, 0, 0], [3, 2])]) {
    const { outputs, mean, variance } = batchNorm({ decay: 0.9, epsilon: 1e-5 }, x, { rowWeights });
    expectClose(tf.slice(outputs, [0, 0, 0], [2, 2, 2]), normalized);
    expect([mean, variance]).toEqual([expected.mean, expected.variance]);
    // Evaluation has no statistics of a batch.
    const evaluated = batchNorm({}, x, { rowWeights, doEval: true });
    expect(evaluated.outputs.dataSync().at(-1)).toBeNaN();
  }
});

test('BatchNorm by moving averages in training has neither gamma nor beta', () => {
  const { outputs, mean: means } = batchNorm(
    { decay: 0.5, epsilon: 1e-5, useMovingAvgInTraining: true },
    column,
  );
  expectClose(tf.tensor1d(means), [1.25, 7.5]);
  // By the averages that this batch has moved: mean 1.25 and 7.5, variance 1.125 and 13.
  expectClose(
    outputs,
    [...column.dataSync()].map((x, i) =>
      i % 2 === 0 ? (x - 1.25) / Math.sqrt(1.12501) : (x - 7.5) / Math.sqrt(13.00001),
    ),
  );
  const names = listVariables(build(BatchNorm.config({ dim: 2, useMovingAvgInTraining: true })));
  expect(names.map(({ path, collections }) => [path, collections])).toEqual([
    ['moving_mean', ['NON_TRAINABLE']],
    ['moving_variance', ['NON_TRAINABLE']],
  ]);
});

test.each([false, true])('gradients of BatchNorm, with padding %s', (isPadded) => {
  const layer = build(BatchNorm.config({ dim: DIM }));
  const { gamma, beta, ...averages } = randomTheta(layer);
  const paddings = isPadded ? tf.tensor2d([0, 1, 0, 0, 0, 1], [2, 3]) : undefined;
  checkGradients(
    layer,
    [tensor([2, 3, DIM]), gamma!, beta!],
    (x, gamma, beta) => run({ gamma: gamma!, beta: beta!, ...averages }, () => layer.fprop(x!, paddings)),
    { theta: {}, probes: 12 },
  );
});

test('gammaInit is the initial value of gamma', () => {
  const layer = build(BatchNorm.config({ dim: 2, gammaInit: -1 }));
  expect([...initialTheta(layer).gamma!.dataSync()]).toEqual([-1, -1]);
});
