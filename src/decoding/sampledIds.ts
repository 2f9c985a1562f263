/** @file The next tokens of all rows inside a program: sampling.ts's rule, on tensors. */
import { type Tensor, tf } from '../compiler/index.js';
import type { SamplingRule } from './sampling.js';

/** The rule of the likeliest token. */
export const GREEDY: SamplingRule = { temperature: 0, k: 0, p: null };

/** A rule's number as float32 holds it: neither 0 nor infinite, and no denormal number, which engines may take for 0. */
const inFloat32 = (positive: number): number => Math.min(Math.max(positive, 2 ** -126), 2 ** 127);

/** Whether the rule draws at random. */
export const isRandom = ({ temperature, k }: SamplingRule): boolean => temperature > 0 && k !== 1;

/** Tokens and their log-probabilities, both [B]. */
interface Drawn {
  readonly ids: Tensor;
  readonly logprobs: Tensor;
}

/** The elements of rows [B, N] at one place each, [B] of int32, as [B]. */
function atPlaces(rows: Tensor, places: Tensor): Tensor {
  const columns = tf.range(0, rows.shape[1]!, 1, 'int32');
  const isPlace = tf.equal(columns, tf.expandDims(places, -1));
  return tf.sum(tf.where(isPlace, rows, tf.zerosLike(rows)), -1) as Tensor;
}

/** Weights of candidates in descending order without those beyond the nucleus: see nucleus() in sampling.ts. */
function withinNucleus(logits: Tensor, p: number): Tensor {
  const probabilities = tf.softmax(logits);
  const before = tf.cumsum(probabilities, 1, true);
  const begins = tf.less(before, inFloat32(p));
  const least = tf.min(tf.where(begins, logits, tf.fill(logits.shape, Number.POSITIVE_INFINITY)), -1, true);
  return tf.greaterEqual(logits, least) as Tensor;
}

/** The place in each row of logits [B, N] that is drawn, [B]. */
function drawnPlaces(logits: Tensor, { temperature, p }: SamplingRule, uniforms: Tensor): Tensor {
  const shifted = tf.div(tf.sub(logits, tf.max(logits, -1, true)), inFloat32(temperature));
  const restricts = p !== null && p < 1;
  const all = tf.exp(shifted) as Tensor;
  const weights = restricts ? tf.where(withinNucleus(logits, p), all, tf.zerosLike(all)) : all;
  const sums = tf.cumsum(weights, 1);
  const total = tf.slice(sums, [0, logits.shape[1]! - 1], [-1, 1]);
  const passed = tf.lessEqual(sums, tf.mul(tf.expandDims(uniforms, -1), total));
  // Rounded up, the number may lie at the end of all: the last candidate with a weight reaches it.
  const last = tf.argMax(tf.cast(tf.greaterEqual(sums, total), 'int32'), -1);
  return tf.minimum(tf.sum(tf.cast(passed, 'int32'), -1), last) as Tensor;
}

/**
 * Draws the next token of each row. Sums are of float32, those of `sampleId` of float64: where a number falls on the
 * border of two tokens, they may draw one each.
 *
 * @param logits [B, V].
 * @param uniforms numbers in [0, 1], [B]; not read where the rule takes the likeliest token.
 * @returns int32 ids and their log-probabilities under the model.
 */
export function sampleIds(logits: Tensor, rule: SamplingRule, uniforms?: Tensor): Drawn {
  const vocabulary = logits.shape[1]!;
  const largest = tf.max(logits, -1, true) as Tensor;
  const logSum = tf.log(tf.sum(tf.exp(tf.sub(logits, largest)), -1));
  const logprobOf = (chosen: Tensor) => tf.sub(tf.sub(chosen, tf.squeeze(largest, [-1])), logSum) as Tensor;
  // The likeliest token's logit is the largest.
  if (!isRandom(rule)) return { ids: tf.argMax(logits, -1), logprobs: tf.neg(logSum) };
  if (rule.k === 0 && (rule.p ?? 1) === 1) {
    const ids = drawnPlaces(logits, rule, uniforms!);
    return { ids, logprobs: logprobOf(atPlaces(logits, ids)) };
  }
  const { values, indices } = tf.topk(logits, Math.min(rule.k || vocabulary, vocabulary));
  const places = drawnPlaces(values, rule, uniforms!);
  return { ids: atPlaces(indices, places), logprobs: logprobOf(atPlaces(values, places)) };
}
