/** @file The next tokens of all rows inside a program: sampling.ts's rule, on tensors. */
import { type Tensor, tf } from '../compiler/index.js';
import { adjustedLogits, type TokenCounts } from './logitAdjustments.js';
import { hasThreshold, type SamplingRule } from './sampling.js';

/** The rule of the likeliest token. */
export const GREEDY: SamplingRule = { temperature: 0, k: 0, p: null };

/** Settings of each row in the place of the rule's, [B]. */
export interface RowSettings<T> {
  readonly temperature?: T | undefined;
  /** At most the rule's, where it has one; 0 for no fewer. */
  readonly k?: T | undefined;
  readonly p?: T | undefined;
}

/** Inputs of drawing besides logits. */
export interface DrawInputs {
  /** Numbers in [0, 1], [B]; not read where the rule takes the likeliest token. */
  readonly uniforms?: Tensor | undefined;
  /** Of rules with adjustments. */
  readonly tokens?: TokenCounts | undefined;
  readonly settings?: RowSettings<Tensor> | undefined;
  /** Of rows under a constraint: above 0 for the tokens that may be drawn, int32 [B, V]. */
  readonly allowed?: Tensor | undefined;
}

const [LEAST, MOST] = [2 ** -126, 2 ** 127];

/** A rule's number as float32 holds it: neither 0 nor infinite, and no denormal number, which engines may take for 0. */
const inFloat32 = (positive: number): number => Math.min(Math.max(positive, LEAST), MOST);

/** The same of each row's number [B], as a column. */
const columnInFloat32 = (positive: Tensor): Tensor =>
  tf.expandDims(tf.minimum(tf.maximum(positive, tf.scalar(LEAST)), tf.scalar(MOST)), -1);

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

/**
 * Weights of candidates in descending order without those beyond the nucleus: see nucleus() in sampling.ts.
 *
 * @param p a number, or a column of them [B, 1].
 * @param all logits of which p is a share, where these are not the candidates.
 */
function withinNucleus(logits: Tensor, p: number | Tensor, all: Tensor | undefined): Tensor {
  const probabilities = all === undefined ? tf.softmax(logits) : shares(logits, all);
  const before = tf.cumsum(probabilities, 1, true);
  const begins = tf.less(before, p);
  const least = tf.min(tf.where(begins, logits, tf.fill(logits.shape, Number.POSITIVE_INFINITY)), -1, true);
  return tf.greaterEqual(logits, least) as Tensor;
}

/** Probabilities of candidates among all tokens. */
function shares(logits: Tensor, all: Tensor): Tensor {
  const largest = tf.max(all, -1, true);
  return tf.div(tf.exp(tf.sub(logits, largest)), tf.sum(tf.exp(tf.sub(all, largest)), -1, true)) as Tensor;
}

/** Which candidates are in the nucleus; undefined where the rule has none. */
function nucleusOf(logits: Tensor, rule: SamplingRule, rowP: Tensor | undefined, all: Tensor) {
  const whole = rule.globalNormalize ? all : undefined;
  if (rowP !== undefined) {
    const isAll = tf.greaterEqual(tf.expandDims(rowP, -1), tf.scalar(1));
    return tf.logicalOr(isAll, withinNucleus(logits, columnInFloat32(rowP), whole));
  }
  if (rule.p === null || rule.p >= 1) return undefined;
  return withinNucleus(logits, inFloat32(rule.p), whole);
}

/** The place in each row of logits [B, N] that is drawn, [B]. @param all logits of which these are the likeliest */
function drawnPlaces(logits: Tensor, rule: SamplingRule, inputs: DrawInputs, all: Tensor): Tensor {
  const { uniforms, settings = {} } = inputs;
  const temperature =
    settings.temperature === undefined ? inFloat32(rule.temperature) : columnInFloat32(settings.temperature);
  const shifted = tf.div(tf.sub(logits, tf.max(logits, -1, true)), temperature);
  const exponentials = tf.exp(shifted) as Tensor;
  const within = nucleusOf(logits, rule, settings.p, all);
  const weights = within ? tf.where(within, exponentials, tf.zerosLike(exponentials)) : exponentials;
  const sums = tf.cumsum(weights, 1);
  const total = tf.slice(sums, [0, logits.shape[1]! - 1], [-1, 1]);
  const passed = tf.lessEqual(sums, tf.mul(tf.expandDims(uniforms!, -1), total));
  // Rounded up, the number may lie at the end of all: the last candidate with a weight reaches it.
  const last = tf.argMax(tf.cast(tf.greaterEqual(sums, total), 'int32'), -1);
  return tf.minimum(tf.sum(tf.cast(passed, 'int32'), -1), last) as Tensor;
}

/** The largest of each row of logits [B, V], and the logarithm of the sum of the exponentials of all less that, both [B, 1]. */
function normalizer(logits: Tensor): { readonly largest: Tensor; readonly logSum: Tensor } {
  const largest = tf.max(logits, -1, true) as Tensor;
  return { largest, logSum: tf.log(tf.sum(tf.exp(tf.sub(logits, largest)), -1, true)) as Tensor };
}

/** Logits [B, V] with -Infinity at tokens below the rule's thresholds: see aboveThresholds() in sampling.ts. */
function aboveThresholds(logits: Tensor, rule: SamplingRule): Tensor {
  if (!hasThreshold(rule)) return logits;
  const { minP = 0, epsilonP = 0 } = rule;
  const { largest, logSum } = normalizer(logits);
  const relative = tf.fill(largest.shape, Math.log(inFloat32(minP)));
  const absolute = tf.add(logSum, tf.scalar(Math.log(inFloat32(epsilonP))));
  const least = tf.add(largest, tf.minimum(tf.maximum(relative, absolute), tf.scalar(0)));
  const never = tf.fill(logits.shape, Number.NEGATIVE_INFINITY);
  return tf.where(tf.less(logits, least), never, logits) as Tensor;
}

/** Candidates [B, N] in descending order with -Infinity behind each row's k-th. */
function ofEachK(values: Tensor, k: Tensor | undefined): Tensor {
  if (k === undefined) return values;
  const size = values.shape[1]!;
  const most = tf.where(tf.greater(k, tf.scalar(0, 'int32')), k, tf.fill(k.shape, size, 'int32'));
  const isWithin = tf.less(tf.expandDims(tf.range(0, size, 1, 'int32')), tf.expandDims(most, -1));
  return tf.where(isWithin, values, tf.fill(values.shape, Number.NEGATIVE_INFINITY)) as Tensor;
}

/**
 * Draws the next token of each row. Sums are of float32, those of `sampleId` of float64: where a number falls on the
 * border of two tokens, they may draw one each.
 *
 * @param logits [B, V].
 * @returns int32 ids and their log-probabilities under the model, without adjustments.
 */
export function sampleIds(logits: Tensor, rule: SamplingRule, inputs: DrawInputs = {}): Drawn {
  const vocabulary = logits.shape[1]!;
  const { tokens, settings = {}, allowed } = inputs;
  const own = rule.adjustments ? adjustedLogits(logits, rule.adjustments, tokens!) : logits;
  const changed = onlyAllowed(own, allowed);
  const largest = tf.max(logits, -1, true) as Tensor;
  const logSum = tf.log(tf.sum(tf.exp(tf.sub(logits, largest)), -1));
  const logprobOf = (chosen: Tensor) => tf.sub(tf.sub(chosen, tf.squeeze(largest, [-1])), logSum) as Tensor;
  const drawn = (ids: Tensor): Drawn => ({ ids, logprobs: logprobOf(atPlaces(logits, ids)) });
  const { temperature, k, p } = settings;
  if (temperature === undefined && !isRandom(rule)) {
    // The likeliest token's logit is the largest.
    if (changed === logits) return { ids: tf.argMax(logits, -1), logprobs: tf.neg(logSum) };
    return drawn(tf.argMax(changed, -1) as Tensor);
  }
  const orLikeliest = (ids: Tensor): Tensor => {
    if (temperature === undefined) return ids;
    return tf.where(tf.equal(temperature, tf.scalar(0)), tf.argMax(changed, -1), ids) as Tensor;
  };
  const likely = aboveThresholds(changed, rule);
  const takesAll = rule.k === 0 && (rule.p ?? 1) === 1 && k === undefined && p === undefined;
  if (takesAll) return drawn(orLikeliest(drawnPlaces(likely, rule, inputs, likely)));
  const { values, indices } = tf.topk(likely, Math.min(rule.k || vocabulary, vocabulary));
  const places = drawnPlaces(ofEachK(values, k), rule, inputs, likely);
  const ids = atPlaces(indices, places);
  const isOwn = changed === logits && temperature === undefined;
  return isOwn ? { ids, logprobs: logprobOf(atPlaces(values, places)) } : drawn(orLikeliest(ids));
}

/** Logits [B, V] with -Infinity at the tokens that may not be drawn. */
function onlyAllowed(logits: Tensor, allowed: Tensor | undefined): Tensor {
  if (allowed === undefined) return logits;
  const never = tf.fill(logits.shape, Number.NEGATIVE_INFINITY);
  return tf.where(tf.greater(allowed, tf.scalar(0, 'int32')), logits, never) as Tensor;
}

/** Entropies of the softmax of logits [B, V], [B], in nats. */
export function entropies(logits: Tensor): Tensor {
  const logprobs = tf.logSoftmax(logits) as Tensor;
  // A token of probability zero adds nothing.
  const isPossible = tf.greater(logprobs, tf.scalar(Number.NEGATIVE_INFINITY));
  const terms = tf.where(isPossible, tf.mul(tf.exp(logprobs), logprobs), tf.zerosLike(logprobs));
  return tf.neg(tf.sum(terms, -1)) as Tensor;
}

/** The `count` likeliest ids of logits [B, V] that may be drawn, and their log-probabilities, both [B, count], likeliest first. */
export function likeliestOf(
  logits: Tensor,
  count: number,
  allowed?: Tensor,
): { readonly ids: Tensor; readonly logprobs: Tensor } {
  const { values, indices } = tf.topk(onlyAllowed(logits, allowed), count);
  const { largest, logSum } = normalizer(logits);
  return { ids: indices as Tensor, logprobs: tf.sub(tf.sub(values, largest), logSum) as Tensor };
}

/** Log-probabilities of certain ids by logits [B, V], [B, number of ids]; -Infinity for those that may not be drawn. */
export const logprobsAt = (logits: Tensor, ids: readonly number[], allowed?: Tensor): Tensor =>
  tf.gather(
    onlyAllowed(tf.logSoftmax(logits) as Tensor, allowed),
    tf.tensor1d([...ids], 'int32'),
    1,
  ) as Tensor;
