/** @file The loss of a batch by the model's metrics: one of them, or a sum of several. */
import { ops, type Tensor, tf } from '../compiler/index.js';
import { ConfigError } from '../hparams/index.js';
import type { TensorBatch, WeightedScalar, WeightedScalars } from '../models/index.js';
import type { SingleTask } from './singleTask.js';
import { overParts, type PartResult } from './subBatches.js';

/** value · weight, 0 where the weight is 0, whatever the value. */
export const weighted = (value: Tensor, weight: Tensor): Tensor =>
  tf.where(tf.greater(weight, 0), tf.mul(value, weight), tf.zerosLike(value));

/** Division by a sum of weights; 0 where there are none. */
export function over(weight: Tensor): (sum: Tensor) => Tensor {
  const factor = tf.where(tf.greater(weight, 0), tf.reciprocal(weight), tf.zerosLike(weight));
  return (sum) => tf.mul(sum, factor);
}

const sum = (terms: readonly Tensor[]): Tensor => terms.reduce((a, b) => tf.add(a, b));

/**
 * The loss of a batch: the learner's metric, or the sum of those of the task's aggregator, each times its factor, with the
 * weight of the first. A metric without weight adds nothing to a sum.
 *
 * @throws ConfigError where the model lacks one of them
 */
export function lossOf(task: SingleTask, metrics: WeightedScalars): WeightedScalar {
  if (task.hp.lossAggregator === null) return task.lossOf(metrics);
  const losses = task.lossesOf(metrics);
  const terms = losses.map(({ factor, metric: [value, weight] }) =>
    tf.mul(tf.where(tf.greater(weight, 0), value, tf.zerosLike(value)), factor),
  );
  return [sum(terms), losses[0]!.metric[1]];
}

/** Parts of a batch: tensors [parts, rows of a part, …], and keys [parts, 2]. */
interface Parts {
  readonly batch: TensorBatch;
  readonly prngKey: Tensor;
}

/**
 * The share in the whole batch that a weight of 1 gives each of several losses, by name: they add up by weights of their own,
 * which a pass over the parts counts before. Nothing else of that pass is computed.
 *
 * @param metricsOf the model's metrics of a part.
 * @throws ConfigError where the batch has the rows of one rank alone.
 */
export function lossShares(
  task: SingleTask,
  parts: Parts,
  metricsOf: (part: Parts) => WeightedScalars,
): Record<string, Tensor> {
  const { numSubBatches } = task.hp.train.hp;
  const [count] = parts.prngKey.shape as [number];
  if (count < numSubBatches)
    throw new ConfigError(
      'task.lossAggregator adds up several losses, whose weights are those of the whole batch, and here a rank has ' +
        `${count} of ${numSubBatches} sub-batches: train in one process, or add up the losses in the model.`,
      { path: 'task.lossAggregator' },
    );
  const weights = (part: Parts): PartResult => {
    const losses = task.lossesOf(metricsOf(part));
    const found = losses.map(({ name, metric: [, weight] }) => [name, tf.cast(weight, 'float32')] as const);
    return { sums: Object.fromEntries(found), tables: {}, rows: {} };
  };
  const { sums } = overParts(weights as (part: object) => PartResult, { ...parts }, 0, count);
  return Object.fromEntries(
    Object.entries(sums as Record<string, Tensor>).map(([name, total]) => [
      name,
      ops.stopGradient(over(total)(tf.onesLike(total))),
    ]),
  );
}

/** What a part adds to a sum of losses, each by its share in the whole batch; the weights of all parts add up to 1. */
export function sumOfShares(
  task: SingleTask,
  metrics: WeightedScalars,
  shares: Readonly<Record<string, Tensor>>,
): WeightedScalar {
  const terms = task
    .lossesOf(metrics)
    .map(({ name, factor, metric: [value, weight] }) =>
      tf.mul(tf.mul(weighted(value, ops.stopGradient(weight)), shares[name]!), factor),
    );
  return [sum(terms), tf.scalar(1 / task.hp.train.hp.numSubBatches)];
}
