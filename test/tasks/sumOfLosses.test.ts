/** @file Losses: sums of several metrics, whole and in sub-batches, and settings that contradict one another. */
import { expect, test } from 'vitest';
import {
  compile,
  type HostTensor,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
} from '../../src/compiler/index.js';
import type { Config } from '../../src/hparams/index.js';
import { build, ConfigError } from '../../src/hparams/index.js';
import { Learner, Sgd } from '../../src/learners/index.js';
import { BaseModel, type TensorBatch } from '../../src/models/index.js';
import {
  type BaseLossAggregator,
  LossAggregator,
  MultiLossAggregator,
  SingleTask,
  Train,
  trainStep,
  WeightedLossAggregator,
} from '../../src/tasks/index.js';
import { noise } from '../learners/fixtures.js';

/** Two mean squared errors of one line, each over rows of weights of its own. */
class TwoErrors extends BaseModel {
  protected override setup(): void {
    this.createVariable('w', { shape: [3] });
  }
  override computePredictions({ x }: TensorBatch) {
    return tf.sum(tf.mul(x!, this.getVar('w')), 1) as Tensor;
  }
  override computeLoss = this.loss((predictions, batch) => {
    const mean = (target: string, weights: string, divisor: (total: Tensor) => Tensor): [Tensor, Tensor] => {
      const total = tf.sum(batch[weights]!) as Tensor;
      const errors = tf.squaredDifference(predictions, batch[target]!);
      return [tf.div(tf.sum(tf.mul(errors, batch[weights]!)), divisor(total)) as Tensor, total];
    };
    const least = (total: Tensor) => tf.maximum(total, 1e-6) as Tensor;
    const second = mean('z', 'zWeights', least);
    this.addSummary('second', () => second[0]);
    return [
      { first: mean('y', 'yWeights', least), second, bare: mean('z', 'zWeights', (total) => total) },
      {},
    ];
  });
}

const rows = 4;
const [w, xs, ys, zs] = [noise(1, 3), noise(2, 3 * rows), noise(3, rows), noise(4, rows)];
// The second half of the batch has no row of the second loss: its bare mean there is 0 / 0.
const [yWeights, zWeights] = [
  [1, 3, 0.5, 2],
  [2, 1, 0, 0],
];

interface Outputs {
  readonly loss: HostTensor;
  readonly grads: Record<string, HostTensor>;
  readonly summaries: Record<string, HostTensor>;
}

async function stepOf(lossAggregator: Config<BaseLossAggregator>, numSubBatches = 1): Promise<Outputs> {
  const learner = Learner.config({ optimizer: Sgd.config({ learningRate: 1 }) });
  const train = Train.config({ learner, numSubBatches });
  const task = build(SingleTask.config({ model: TwoErrors.config(), train, lossAggregator }));
  const floats = (shape: number[], values: readonly number[]) => ({
    ...{ shape, dtype: 'float32' as const },
    data: Float32Array.from(values),
  });
  const inputs = {
    params: { w: floats([3], w) },
    batch: {
      x: floats([rows, 3], xs),
      ...{ y: floats([rows], ys), z: floats([rows], zs) },
      ...{ yWeights: floats([rows], yWeights), zWeights: floats([rows], zWeights) },
    },
    prngKey: { shape: [2], dtype: 'int32' as const, data: Int32Array.of(1, 2) },
  } as unknown as Tree<HostTensor>;
  const executable = await compile(trainStep(task), inputs as Tree<TensorSpec>, { engine: 'onnx' });
  return (await executable.run(inputs)) as unknown as Outputs;
}

/** Value and gradient of one of the losses, in doubles. */
function meanError(target: readonly number[], weights: readonly number[]) {
  const total = weights.reduce((a, b) => a + b);
  const grad = [0, 0, 0];
  let value = 0;
  for (let i = 0; i < rows; i++) {
    const x = xs.slice(3 * i, 3 * i + 3);
    const error = x.reduce((sum, each, k) => sum + each * w[k]!, -target[i]!);
    value += (weights[i]! * error ** 2) / total;
    for (const k of [0, 1, 2]) grad[k]! += (2 * weights[i]! * error * x[k]!) / total;
  }
  return { value, grad };
}

test('a sum of losses has the sum of their gradients, and each is a mean over its own weights in sub-batches, too', async () => {
  const [first, second] = [meanError(ys, yWeights), meanError(zs, zWeights)];
  const cases = [
    [LossAggregator.config({ lossKey: 'bare' }), 0, 1, [4]],
    [MultiLossAggregator.config({ lossKeys: ['first', 'second'] }), 1, 1, [1, 2]],
    [WeightedLossAggregator.config({ lossWeights: { second: 0.25, first: -2 } }), -2, 0.25, [4]],
  ] as const;
  for (const [aggregator, a, b, counts] of cases)
    for (const parts of counts) {
      const { loss, grads, summaries } = await stepOf(aggregator, parts);
      const label = `${aggregator} in ${parts}`;
      expect(Math.abs(loss.data[0]! - (a * first.value + b * second.value)), label).toBeLessThan(1e-5);
      grads.w!.data.forEach((value, k) => {
        expect(Math.abs(value - (a * first.grad[k]! + b * second.grad[k]!)), label).toBeLessThan(1e-5);
      });
      // Where the loss has weights, parts without any are left out of the means of summaries.
      if (a === 0) expect(Object.values(summaries)[0]!.data[0], label).toBeCloseTo(second.value, 5);
    }
});

test('settings that contradict one another, and losses that the model does not have', async () => {
  const learner = Learner.config({ optimizer: Sgd.config({ learningRate: 1 }), lossName: 'first' });
  const lossAggregator = MultiLossAggregator.config({ lossKeys: ['first', 'secnd'] });
  const config = SingleTask.config({
    model: TwoErrors.config(),
    train: Train.config({ learner }),
    lossAggregator,
  });
  expect(() => build(config)).toThrow(
    'lossAggregator (SingleTask): it says which metrics are minimised, and so does train.learner.lossName: leave one of them out',
  );
  await expect(stepOf(lossAggregator)).rejects.toEqual(
    new ConfigError(
      "task.lossAggregator minimises 'secnd', and TwoErrors has no such metric. Did you mean 'second'? It has: first, second, bare.",
      { path: 'task.lossAggregator' },
    ),
  );
  expect(() => WeightedLossAggregator.config({ lossWeights: {} })).toThrow('expected at least one metric');
});

/** Its gradient is that of the step whose number a row has, as Pax's figures have it. */
class GivenGradient extends BaseModel {
  protected override setup(): void {
    this.createVariable('w', { shape: [24] });
  }
  override computePredictions({ grad }: TensorBatch) {
    return tf.sum(tf.mul(grad!, this.getVar('w')), 1) as Tensor;
  }
  override computeLoss = this.loss((products) => [
    { total_loss: [tf.mean(products) as Tensor, tf.scalar(products.shape[0]!)] },
    {},
  ]);
}

test("two sub-batches move variables as Pax's accumulator does with two steps", async () => {
  const learner = Learner.config({ optimizer: Sgd.config({ learningRate: 0.1 }) });
  const task = build(
    SingleTask.config({ model: GivenGradient.config(), train: Train.config({ learner, numSubBatches: 2 }) }),
  );
  const values = (f: (i: number) => number) => Float32Array.from({ length: 24 }, (_, i) => f(i));
  const start = values((i) => Math.sin(i + 1));
  const grads = [0, 1].map((t) => values((i) => Math.sin(0.7 * (i + 1) * (t + 1))));
  const inputs = {
    params: { w: { shape: [24], dtype: 'float32', data: start } },
    batch: {
      grad: { shape: [2, 24], dtype: 'float32', data: Float32Array.from(grads.flatMap((g) => [...g])) },
    },
    prngKey: { shape: [2], dtype: 'int32', data: Int32Array.of(1, 2) },
  } as unknown as Tree<HostTensor>;
  const executable = await compile(trainStep(task), inputs as Tree<TensorSpec>, { engine: 'onnx' });
  const { grads: found } = (await executable.run(inputs)) as unknown as Outputs;
  const squares = (of: Float32Array) => of.reduce((sum, value) => sum + value * value, 0);
  expect(squares(start)).toBeCloseTo(12.53336, 5);
  expect(squares(start.map((value, i) => value - 0.1 * found.w!.data[i]!))).toBeCloseTo(12.48611, 5);
});
