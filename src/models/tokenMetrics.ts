/** @file Metrics of models that predict tokens (praxis/layers/models.py, praxis/contrib/gpu). */
import { type Tensor, tf } from '../compiler/index.js';
import { isWeighed, type LmOutput, weightedSum } from '../layers/index.js';
import { type WeightedScalar, type WeightedScalars, weightedAccuracy } from './baseModel.js';

/** Predicted tokens and how they count. */
export interface PredictedTokens {
  /** int32 [B, T]. */
  readonly labels: Tensor;
  /** float32 [B, T]. */
  readonly weights: Tensor;
}

/**
 * total_loss, avg_xent, aux_loss, log_pplx (nats a token), the share of right tokens and num_predictions.
 *
 * @param accuracy name of the share.
 */
export function tokenMetrics(
  { totalLoss, avgXent, avgXentWeight, auxLoss, totalWeight, perExampleArgmax }: LmOutput,
  { labels, weights }: PredictedTokens,
  accuracy = 'fraction_of_correct_next_step_preds',
): WeightedScalars {
  const one = tf.scalar(1);
  return {
    total_loss: [totalLoss, totalWeight],
    avg_xent: [avgXent, avgXentWeight],
    aux_loss: [auxLoss ?? tf.scalar(0), one],
    log_pplx: [avgXent, avgXentWeight],
    [accuracy]: [weightedAccuracy(perExampleArgmax, labels, weights, totalWeight), totalWeight],
    num_predictions: [totalWeight, one],
  };
}

/** Mean of the hits of examples, bool [B], by their weights [B]. */
function exampleAccuracy(hits: Tensor, exampleWeights: Tensor): WeightedScalar {
  const total = tf.sum(exampleWeights);
  const right = weightedSum(tf.cast(hits, 'float32'), exampleWeights);
  return [tf.div(right, tf.maximum(total, 1)), total];
}

/**
 * Share of the examples of which every weighed token is predicted, as LAMBADA is scored.
 *
 * @param exampleWeights [B].
 */
export function strictAccuracy(
  { perExampleArgmax }: LmOutput,
  { labels, weights }: PredictedTokens,
  exampleWeights: Tensor,
): WeightedScalar {
  const isRight = tf.logicalOr(tf.equal(labels, perExampleArgmax), tf.logicalNot(isWeighed(weights)));
  return exampleAccuracy(tf.all(isRight, -1), exampleWeights);
}

/**
 * Share of the examples whose answer, a weighed token `yes` or `no`, has a larger logit than the other one of the two.
 *
 * @param exampleWeights [B].
 */
export function yesNoAccuracy(
  { logits }: LmOutput,
  { labels, weights }: PredictedTokens,
  [yes, no]: readonly [number, number],
  exampleWeights: Tensor,
): WeightedScalar {
  const [batch, time] = labels.shape as [number, number];
  const logitOf = (id: number): Tensor =>
    tf.reshape(tf.slice(logits, [0, 0, id], [batch, time, 1]), [batch, time]);
  const margin = tf.sub(logitOf(yes), logitOf(no));
  const is = (id: number): Tensor =>
    tf.logicalAnd(tf.equal(labels, tf.scalar(id, 'int32')), isWeighed(weights));
  const isRight = tf.logicalOr(
    tf.logicalAnd(is(yes), tf.greater(margin, 0)),
    tf.logicalAnd(is(no), tf.less(margin, 0)),
  );
  return exampleAccuracy(tf.any(isRight, -1), exampleWeights);
}
