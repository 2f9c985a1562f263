/** @file Training step: the gradients of a batch, of its sub-batches, or of the part of them that a rank has. */
import { ops, type Tensor, type Tree, tf } from '../compiler/index.js';
import type { WeightedScalar, WeightedScalars } from '../models/index.js';
import {
  batchStep,
  forwardMetrics,
  gradientsOf,
  type StepForm,
  type TrainInputs,
  type TrainOutputs,
} from './batchGradients.js';
import type { SingleTask } from './singleTask.js';
import { overParts, type PartResult, type RowGradients, splitRows } from './subBatches.js';
import { lossOf, lossShares, over, sumOfShares, weighted } from './sumOfLosses.js';

/** Inputs of the gradients of some sub-batches. */
export interface GradientInputs extends Omit<TrainInputs, 'prngKey'> {
  /** int32 [sub-batches, 2]: theirs among the keys that `splitKeyHost` makes of a step's. */
  readonly prngKeys: Tensor;
}

/** Sums over sub-batches: of values times weights, and of weights. Those of all sub-batches are the sums of those of parts. */
export interface GradientSums
  extends Pick<TrainOutputs, 'loss' | 'metrics' | 'summaries' | 'updatedVars' | 'grads'> {
  /** Of the loss. */
  readonly weight: Tensor;
  readonly [key: string]: Tree<Tensor>;
}

/**
 * The training step of a task as a pure function: the gradients of a batch, or of its sub-batches one after the other
 * (`numSubBatches`), so that the activations of one of them are in memory at a time.
 */
export function trainStep(task: SingleTask, form: StepForm = {}): (inputs: TrainInputs) => TrainOutputs {
  const { numSubBatches: count, learner } = task.hp.train.hp;
  if (count === 1 && !learner.transformsSubBatches) return batchStep(task, form);
  const [gradients, means] = [gradientStep(task, form), meanStep(task)];
  return ({ prngKey, ...inputs }) => {
    const prngKeys = tf.stack(ops.splitKey(prngKey, count));
    const { sums, rowSums, media } = gradients({ ...inputs, prngKeys });
    return { ...means(sums, rowSums, prngKey), media } as TrainOutputs;
  };
}

/**
 * The first half of a training step, up to where sums over ranks, or whatever else stands between gradients and update, have
 * their place: sums over those of a step's sub-batches whose rows the batch has. The other half is `meanStep`.
 */
export function gradientStep(
  task: SingleTask,
  form: StepForm = {},
): (inputs: GradientInputs) => {
  sums: GradientSums;
  rowSums: RowGradients;
  media: Record<string, Tensor>;
} {
  const { numSubBatches, learner } = task.hp.train.hp;
  const { subBatchTransform: transform, transformsSubBatches } = learner;
  const { stochasticGradient } = learner.hp;
  const summed = task.summedPaths();
  const part = (step: ReturnType<typeof gradientsOf>, inputs: TrainInputs): PartResult => {
    const { updatedVars, ...others } = step(inputs);
    // The mean over sub-batches is then the sum of their additions.
    const sums = summed.map((path) => {
      const before = inputs.params[path]!;
      return [path, tf.add(before, tf.mul(tf.sub(updatedVars[path]!, before), numSubBatches))] as const;
    });
    const found = { ...others, updatedVars: { ...updatedVars, ...Object.fromEntries(sums) } };
    const { grads, rowGrads } = found;
    const own = { ...grads, ...mapRecord(rowGrads, ({ rows }) => rows) };
    // A part of padding alone may have a loss, and so gradients, that are no numbers.
    const kept = (grad: Tensor) => tf.where(tf.greater(found.weight, 0), grad, tf.zerosLike(grad));
    const clipped = stochasticGradient?.clip(own);
    const of = transform === null ? kept : (value: Tensor) => weighted(value, found.weight);
    const all = mapRecord(clipped?.grads ?? (transform === null ? own : transform(own)), of);
    return numerators({
      ...found,
      loss: transformsSubBatches ? weighted(found.loss, found.weight) : found.loss,
      summaries: {
        ...found.summaries,
        ...(clipped && { 'dp_metrics/frac_clipped': clipped.fractionClipped }),
      },
      grads: mapRecord(grads, (_, path) => all[path]!),
      rowGrads: mapRecord(rowGrads, ({ indices }, path) => ({ indices, rows: all[path]! })),
    });
  };
  return ({ batch, prngKeys, ...whole }) => {
    const [count] = prngKeys.shape as [number];
    const parts = { batch: splitRows(batch, count, numSubBatches), prngKey: prngKeys };
    const shares =
      task.isSumOfLosses && !transformsSubBatches
        ? lossShares(task, parts, (each) => forwardMetrics(task, { ...whole, ...each }))
        : undefined;
    const minimized = (metrics: WeightedScalars): WeightedScalar => {
      if (shares !== undefined) return sumOfShares(task, metrics, shares);
      const loss = lossOf(task, metrics);
      // The numerator of the loss, so that gradients add up as numerators do; what is transformed is its mean's.
      return !transformsSubBatches ? [weighted(loss[0], ops.stopGradient(loss[1])), loss[1]] : loss;
    };
    const step = gradientsOf(task, minimized, form);
    const { sums, rows, tables } = overParts((each) => part(step, { ...whole, ...each }), parts, 0, count);
    return {
      sums: sums as unknown as GradientSums,
      rowSums: tables,
      media: rows as Record<string, Tensor>,
    };
  };
}

/**
 * The second half of a training step, in front of the update: means over the whole batch from sums over its sub-batches, and
 * the noise of a stochastic gradient, which needs the step's key.
 */
export function meanStep(
  task: SingleTask,
): (sums: GradientSums, rowSums: RowGradients, prngKey?: Tensor) => Omit<TrainOutputs, 'media'> {
  const { numSubBatches, learner } = task.hp.train.hp;
  const { stochasticGradient } = learner.hp;
  const share = 1 / numSubBatches;
  return ({ loss, weight, metrics, summaries, updatedVars, grads }, rowSums, prngKey) => {
    const mean = (sum: Tensor): Tensor => tf.mul(sum, share);
    const overWeight = over(weight);
    return {
      loss: overWeight(loss),
      metrics: mapRecord(metrics, (each) => ({ value: over(each.weight)(each.value), weight: each.weight })),
      summaries: mapRecord(summaries, overWeight),
      updatedVars: mapRecord(updatedVars, mean),
      grads: mapRecord(grads, (sum, path) =>
        stochasticGradient === null
          ? overWeight(sum)
          : stochasticGradient.noisy(path, mean(sum), numSubBatches, prngKey),
      ),
      rowGrads: mapRecord(rowSums, ({ indices, rows }) => ({ indices, rows: overWeight(rows) })),
    };
  };
}

function numerators({
  media,
  rowGrads,
  metrics,
  summaries,
  ...sums
}: TrainOutputs & { readonly weight: Tensor }): PartResult {
  const products = mapRecord(metrics, ({ value, weight }) => ({
    value: weighted(tf.cast(value, 'float32'), tf.cast(weight, 'float32')),
    weight: tf.cast(weight, 'float32'),
  }));
  const shares = mapRecord(summaries, (value) => weighted(tf.cast(value, 'float32'), sums.weight));
  return {
    sums: { ...sums, metrics: products, summaries: shares } as Tree<Tensor>,
    tables: rowGrads,
    rows: media,
  };
}

const mapRecord = <T, U>(
  record: Readonly<Record<string, T>>,
  f: (value: T, name: string) => U,
): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, f(value, name)]));
