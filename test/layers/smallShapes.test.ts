/** @file Layers on the smallest shapes: batches of no rows and of one, sequences of one to three steps, depths of one to three. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type BaseLayer,
  BatchNorm,
  Bias,
  Conv2D,
  DotProductAttention,
  FeedForward,
  GlobalPooling,
  GroupNorm,
  LayerNorm,
  Linear,
  Pooling,
  RmsNorm,
  RotaryPositionalEmbedding,
  StackedTransformer,
  TransformerFeedForward,
} from '../../src/layers/index.js';
import { expectClose, randomTheta, run, tensor } from './helpers.js';

type Plain = BaseLayer & { fprop(x: Tensor): Tensor };
interface Subject {
  readonly layer: BaseLayer;
  readonly call: (x: Tensor) => Tensor;
  /** Shape of an example; of sequences, time stands first. */
  readonly shape: readonly number[];
}

const subject = (config: Config<Plain>, shape: readonly number[]): Subject => {
  const layer = build(config);
  return { layer, call: (x) => layer.fprop(x), shape };
};

function attention(time: number, numHeads: number, fields: object): Subject {
  const layer = build(
    DotProductAttention.config({ inputDim: 2, hiddenDim: 2 * numHeads, numHeads, ...fields }),
  );
  return { layer, call: (x) => layer.fprop(x, { seen: { causal: true } }), shape: [time, 2] };
}

function transformer(time: number): Subject {
  const layer = build(StackedTransformer.config({ modelDims: 2, hiddenDims: 1, numHeads: 1, numLayers: 1 }));
  return { layer, call: (x) => layer.fprop(x, { seen: { causal: true } }), shape: [time, 2] };
}

const depths = [1, 2, 3];
/** Layers that see each example for itself. */
const byExample: Record<string, Subject> = Object.fromEntries([
  ...depths.flatMap((dim): [string, Subject][] => [
    [`Linear to ${dim}`, subject(Linear.config({ inputDims: 1, outputDims: dim }), [1])],
    [`Linear from ${dim}`, subject(Linear.config({ inputDims: dim, outputDims: 1 }), [2, dim])],
    [`Bias of ${dim}`, subject(Bias.config({ dims: dim }), [dim])],
    [`FeedForward of ${dim}`, subject(FeedForward.config({ inputDims: dim, outputDims: dim }), [dim])],
    [`LayerNorm of ${dim}`, subject(LayerNorm.config({ dim }), [dim])],
    [`RmsNorm of ${dim}`, subject(RmsNorm.config({ dim }), [dim])],
    [`GroupNorm of ${dim}`, subject(GroupNorm.config({ dim, numGroups: dim }), [2, dim])],
    [`GroupNorm of ${dim} in one group`, subject(GroupNorm.config({ dim, numGroups: 1 }), [dim])],
    [
      `cumulative GroupNorm of ${dim} steps`,
      subject(GroupNorm.config({ dim: 2, numGroups: 1, cumulative: true }), [dim, 2]),
    ],
    [
      `rotations of ${dim} steps`,
      subject(RotaryPositionalEmbedding.config({ embeddingDims: 2 }), [dim, 1, 2]),
    ],
    [`attention over ${dim} steps`, attention(dim, 1, {})],
    [`attention of ${dim} heads`, attention(2, dim, { useRotaryPositionEmb: true })],
    [`a transformer over ${dim} steps`, transformer(dim)],
    [
      `a feed-forward layer of ${dim}`,
      subject(TransformerFeedForward.config({ inputDims: dim, hiddenDims: 1 }) as never, [2, dim]),
    ],
    [`Conv2D over ${dim} rows`, subject(Conv2D.config({ filterShape: [3, 3, 1, 2] }), [dim, 1, 1])],
    [
      `Conv2D over ${dim} columns, striding`,
      subject(Conv2D.config({ filterShape: [1, 2, 1, 1], filterStride: [1, 2] }), [1, dim, 1]),
    ],
    [`the largest of ${dim} rows`, subject(Pooling.config({ windowShape: [2, 1] }), [dim, 2, 1])],
    [
      `the mean of ${dim} columns`,
      subject(Pooling.config({ windowShape: [1, 2], poolingType: 'AVG' }), [1, dim, 2]),
    ],
    [
      `the mean of ${dim} elements`,
      subject(GlobalPooling.config({ poolingDims: [1], poolingType: 'AVG' }), [dim, 2]),
    ],
  ]),
]);

const rowOf = (x: Tensor, row: number): Tensor => tf.slice(x, [row], [1]);

test.each(Object.entries(byExample))('%s: a batch gives what its examples give, none for none', (_, each) => {
  const theta = randomTheta(each.layer);
  const outputsOf = (x: Tensor) => run(theta, () => each.call(x));
  const batch = tensor([3, ...each.shape]);
  const alone = [0, 1, 2].map((row) => outputsOf(rowOf(batch, row)));
  const together = outputsOf(batch);
  const shape = alone[0]!.shape.slice(1);
  expect(together.shape).toEqual([3, ...shape]);
  expectClose(
    together,
    alone.flatMap((x) => [...x.dataSync()]),
  );
  expect([...together.dataSync()].every(Number.isFinite)).toBe(true);
  expect(outputsOf(tensor([0, ...each.shape])).shape).toEqual([0, ...shape]);
});

const byTime = Object.entries(byExample).filter(([name]) => /3 steps/.test(name));
test.each(byTime)('%s: what comes later changes nothing', (_, { layer, call, shape }) => {
  const theta = randomTheta(layer);
  const x = tensor([2, ...shape]);
  const whole = run(theta, () => call(x));
  for (const steps of depths) {
    const begin = (y: Tensor) => tf.slice(y, [0, 0], [2, steps]);
    expectClose(
      run(theta, () => call(begin(x))),
      [...begin(whole).dataSync()],
    );
  }
});

test('of one element alone norms know nothing: outputs are the bias', () => {
  const x = tf.tensor2d([[7], [-3]]);
  for (const config of [
    LayerNorm.config({ dim: 1 }),
    GroupNorm.config({ dim: 1, numGroups: 1 }),
    GroupNorm.config({ dim: 1 }),
  ] as Config<Plain>[]) {
    const layer = build(config);
    const theta = {
      scale: tf.tensor1d([5]),
      gamma: tf.tensor1d([5]),
      bias: tf.tensor1d([2]),
      beta: tf.tensor1d([2]),
    };
    expect([...run(theta, () => layer.fprop(x)).dataSync()]).toEqual([2, 2]);
  }
  const rms = build(RmsNorm.config({ dim: 1, epsilon: 1e-12 }));
  expectClose(
    run({ scale: tf.tensor1d([2]) }, () => rms.fprop(x)),
    [2, -2],
  );
});

test('BatchNorm of one row, and of no row that counts', () => {
  const layer = build(BatchNorm.config({ dim: 2, decay: 0.75 }));
  const theta = {
    ...{ gamma: tf.tensor1d([1, 1]), beta: tf.tensor1d([3, 4]) },
    ...{ moving_mean: tf.tensor1d([8, 8]), moving_variance: tf.tensor1d([4, 4]) },
  };
  const moved = (paddings: number) => {
    const updatedVars: Record<string, Tensor> = {};
    const y = run(theta, () => layer.fprop(tf.tensor2d([[16, 0]]), tf.tensor1d([paddings])), { updatedVars });
    return [y, updatedVars.moving_mean!, updatedVars.moving_variance!].map((x) => [...x.dataSync()]);
  };
  expect(moved(0)).toEqual([
    [3, 4],
    [10, 6],
    [3, 3],
  ]);
  expect(moved(1)).toEqual([
    [0, 0],
    [8, 8],
    [4, 4],
  ]);
});
