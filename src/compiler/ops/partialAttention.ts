/** @file Attention to keys in parts, each with the logarithm of its sum of weights, by which the parts are joined. */
import { CompilerError, type TensorSpec } from '../program/tensors.js';
import * as tf from '../tfjs/tfjs.js';
import { type AttentionOptions, maskedLogits } from './attention.js';
import { checkShapes, headsFirst } from './attentionForms.js';

/** Weighted sums over a part of the keys that queries see. */
export interface AttentionPart {
  /** Weighted means of the part's values, zeros where it shows a query no key: [B, T, N, H]. */
  readonly means: tf.Tensor;
  /** The logarithm of the sum of exp(logit), -Infinity without a key: [B, T, N, 1]. */
  readonly logSums: tf.Tensor;
}

/**
 * As `attention`, of a part of the keys. Logits of all queries and keys stand in memory: it is for the few queries of a
 * decode. Sinks count in the sum of weights, so that one part alone has them.
 *
 * @throws CompilerError where `dropout` is given.
 */
export function attentionPart(
  q: tf.Tensor,
  k: tf.Tensor,
  v: tf.Tensor,
  options: AttentionOptions = {},
): AttentionPart {
  if (options.dropout) throw new CompilerError('attentionPart: expected no dropout, got options.dropout.');
  const { causal = false, sinks } = options;
  checkShapes([q, k, v] as unknown as TensorSpec[], { causal });
  const { logits } = maskedLogits(q, k, options);
  const column = sinks && tf.reshape(sinks, [1, sinks.size, 1, 1]);
  const largest = tf.max(logits, -1, true);
  const highest = column ? tf.maximum(largest, column) : largest;
  // A query without a key has no largest logit to subtract.
  const none = tf.equal(highest, Number.NEGATIVE_INFINITY);
  const shift = tf.where(none, tf.zerosLike(highest), highest);
  const weights = tf.exp(tf.sub(logits, shift));
  const ofKeys = tf.sum(weights, -1, true);
  const total = column ? tf.add(ofKeys, tf.exp(tf.sub(column, shift))) : ofKeys;
  const means = tf.div(tf.matMul(weights, headsFirst(v)), tf.where(none, tf.onesLike(total), total));
  return { means: headsFirst(means), logSums: headsFirst(tf.add(shift, tf.log(total))) };
}

/** The attention to the keys of all parts, of which each query sees one at least: [B, T, N, H]. */
export function joinParts(parts: readonly AttentionPart[]): tf.Tensor {
  const highest = parts.map(({ logSums }) => logSums).reduce((a, b) => tf.maximum(a, b));
  const shares = parts.map(({ logSums }) => tf.exp(tf.sub(logSums, highest)));
  const sums = parts.map(({ means }, i) => tf.mul(means, shares[i]!));
  const add = (a: tf.Tensor, b: tf.Tensor): tf.Tensor => tf.add(a, b);
  return tf.div(sums.reduce(add), shares.reduce(add));
}
