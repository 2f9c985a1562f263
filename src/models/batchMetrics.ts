/** @file Losses and metrics of a batch, weighted by row: classification and regression. */
import { ops, type Tensor, tf } from '../compiler/index.js';
import { isWeighed, selected, weightedSum } from '../layers/index.js';
import type { WeightedScalar, WeightedScalars } from './baseModel.js';

/** Means over rows by weight, with that weight; 0 and not NaN for a batch that is all padding. */
export function meansBy(weights: Tensor): (values: Tensor) => WeightedScalar {
  const total = tf.sum(weights);
  const divisor = tf.maximum(total, 1e-6);
  return (values) => [tf.div(weightedSum(values, weights), divisor), total];
}

/** Rows of logits [..., classes] of which fewer than k are above that of the label: bool [...]. @param ids int32 [...] */
export function topKHits(logits: Tensor, ids: Tensor, k: number): Tensor {
  if (k === 1) return tf.equal(tf.argMax(logits, -1), ids);
  const own = tf.sum(tf.mul(logits, tf.oneHot(ids, logits.shape.at(-1)!)), -1, true);
  const above = tf.sum(tf.cast(tf.greater(logits, own), 'float32'), -1);
  return tf.less(above, k);
}

/**
 * Metrics of a classifier: `total_loss` (cross entropy in nats), `accuracy`, and `top_<k>_accuracy` for each k. Where a
 * row belongs to several classes, accuracies are those of the one with the largest share.
 *
 * @param given logits [..., classes].
 * @param labels ids of classes, int32 [...], or shares of the classes, float32 [..., classes], which sum to 1.
 * @param weights float32 [...]: 0 for padding, whose logits may be anything.
 * @param options `topK`: a row counts where fewer than k logits are above that of its label.
 */
export function classificationMetrics(
  given: Tensor,
  labels: Tensor,
  weights: Tensor,
  { topK = [] }: { readonly topK?: readonly number[] } = {},
): WeightedScalars {
  const mean = meansBy(weights);
  const share = (hits: Tensor): WeightedScalar => mean(tf.cast(hits, 'float32'));
  const isShared = labels.rank === given.rank;
  // Before the softmax, since its gradient is not finite where logits are not.
  const counted = tf.expandDims(isWeighed(weights), -1);
  const logits = selected(given, counted);
  const ids = isShared ? tf.argMax(labels, -1) : labels;
  const losses = isShared
    ? tf.neg(tf.sum(tf.mul(selected(labels, counted), tf.logSoftmax(logits)), -1))
    : ops.softmaxCrossEntropy(logits, labels);
  const metrics: Record<string, WeightedScalar> = {
    total_loss: mean(losses),
    accuracy: share(topKHits(logits, ids, 1)),
  };
  for (const k of topK) metrics[`top_${k}_accuracy`] = share(topKHits(logits, ids, k));
  return metrics;
}

/**
 * Metrics of a regression: `total_loss` (mean squared error) and `mean_absolute_error`.
 *
 * @param predictions [batch] or [batch, outputs]; outputs count alike.
 * @param targets of the same shape.
 * @param weights float32 [batch]: 0 for padding, whose predictions and targets may be anything.
 */
export function regressionMetrics(predictions: Tensor, targets: Tensor, weights: Tensor): WeightedScalars {
  const counts = isWeighed(weights);
  const error = selected(
    tf.sub(predictions, targets),
    predictions.rank === weights.rank ? counts : tf.expandDims(counts, -1),
  );
  const mean = meansBy(weights);
  const rows = (values: Tensor): Tensor => (values.rank === 1 ? values : tf.mean(values, -1));
  return {
    total_loss: mean(rows(tf.square(error))),
    mean_absolute_error: mean(rows(tf.abs(error))),
  };
}
