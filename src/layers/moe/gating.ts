/** @file Gating: which experts compute which tokens, with which weights (praxis/gshard_utils.py). */
import { ops, type Tensor, tf } from '../../compiler/index.js';

/**
 * The rows that experts compute, in the order of the experts: the first sizes[0] are those of expert 0, and so on; rows behind
 * them are dropped.
 */
export interface Dispatch {
  /** int32 [R]: the token of each row. */
  readonly tokens: Tensor;
  /** int32 [E]. */
  readonly sizes: Tensor;
  /** float32 [R]: factors on what the experts make of the rows; 0 for dropped ones. */
  readonly weights: Tensor;
}

/** Tokens in G groups of S with the scores of E experts. */
export interface Scored {
  /** float32 [G, S, E]: what is compared, and what the weights of chosen experts are made of. */
  readonly scores: Tensor;
  /** bool [G, S, 1]: false for padding, which no expert computes. */
  readonly kept?: Tensor | undefined;
}

/** Experts that tokens have chosen, k each. */
export interface Choices {
  /** float32 [G, k, S, E]: 1 for the i-th choice of a token, 0 elsewhere and for padding. */
  readonly masks: Tensor;
  /** float32 [G, k, S]. */
  readonly gates: Tensor;
}

const float = (x: Tensor): Tensor => tf.cast(x, 'float32');
const int = (x: Tensor): Tensor => tf.cast(x, 'int32');

/** One-hot rows of the indices, [G, k, S, E], without padding. */
function masksOf(indices: readonly Tensor[], experts: number, kept: Tensor | undefined): Tensor {
  const masks = tf.oneHot(tf.stack([...indices], 1) as Tensor, experts, 1, 0, 'float32') as Tensor;
  return kept ? tf.where(tf.expandDims(kept, 1), masks, tf.scalar(0)) : masks;
}

/** Settings of a choice by tokens. */
export interface ChoiceOptions {
  /** Experts of each token. */
  readonly k: number;
  /** float32 [E], added to scores where they are compared, and not in weights (Wang et al., 2024). */
  readonly bias?: Tensor | undefined;
  /** `count` groups of neighbouring experts, of which a token takes from the best `taken` alone. */
  readonly groups?: { readonly count: number; readonly taken: number } | undefined;
  /** How a second expert is chosen, and the key to draw it by: the next best one; one drawn by its logit [G, S, E]. */
  readonly sampled?: { readonly key: Tensor; readonly logits: Tensor } | undefined;
  /** Key by which a second expert is kept with probability gate / `threshold`. */
  readonly thinned?: { readonly key: Tensor; readonly threshold: number } | undefined;
}

/**
 * Scores [G, S, E] of the experts in a token's best groups, and -∞ of the others. Groups are compared by the sum of their two
 * best scores (DeepSeek-V3, 2024, section 2.1.2).
 */
function ofBestGroups(scores: Tensor, { count, taken }: NonNullable<ChoiceOptions['groups']>): Tensor {
  const [groups, size, experts] = scores.shape as [number, number, number];
  const split = tf.reshape(scores, [groups, size, count, experts / count]);
  const { indices } = tf.topk(tf.sum(tf.topk(split, 2).values, -1), taken);
  const isBest = tf.sum(tf.oneHot(indices as tf.Tensor1D, count), -2, true) as Tensor;
  const chosen = tf.cast(tf.reshape(isBest, [groups, size, count, 1]), 'bool');
  return tf.reshape(tf.where(chosen, split, tf.scalar(Number.NEGATIVE_INFINITY)), scores.shape);
}

/** The k experts of highest score of each token; their gates have the sum 1, where there are several (Shazeer et al., 2017). */
export function chooseExperts({ scores, kept }: Scored, options: ChoiceOptions): Choices {
  const { k, bias, groups, sampled, thinned } = options;
  const experts = scores.shape[2]!;
  const biased = ops.stopGradient(bias ? tf.add(scores, bias) : scores);
  const compared = groups ? ofBestGroups(biased, groups) : biased;
  const best = tf.unstack(tf.topk(compared, sampled ? 1 : k).indices as Tensor, 2);
  if (sampled) {
    const isFirst = tf.cast(tf.oneHot(best[0]!, experts), 'bool');
    const others = tf.where(isFirst, tf.scalar(Number.NEGATIVE_INFINITY), ops.stopGradient(sampled.logits));
    best.push(ops.categorical(sampled.key, others as Tensor));
  }
  let masks = masksOf(best, experts, kept);
  const chosen = tf.sum(tf.mul(tf.expandDims(scores, 1), masks), -1) as Tensor;
  let gates = k > 1 ? tf.div(chosen, tf.add(tf.sum(chosen, 1, true), 1e-9)) : chosen;
  if (thinned) {
    const [first, second] = tf.split(gates, 2, 1) as [Tensor, Tensor];
    const draws = ops.randomUniform(thinned.key, second.shape);
    const stays = tf.less(draws, tf.div(ops.stopGradient(second), Math.max(thinned.threshold, 1e-9)));
    const both = float(tf.concat([tf.onesLike(first), stays].map(float), 1));
    [gates, masks] = [tf.mul(gates, both), tf.mul(masks, tf.expandDims(both, -1))];
  }
  return { masks, gates: gates as Tensor };
}

/**
 * Rows of chosen experts; of each group an expert takes the first `capacity` tokens, first choices first. Without a capacity,
 * and of tokens that are no padding, none is dropped.
 */
export function dispatchChoices({ masks, gates }: Choices, capacity: number): Dispatch {
  const [groups, k, size, experts] = masks.shape as [number, number, number, number];
  const rows = groups * k * size;
  let taken = tf.reshape(masks, [groups, k * size, experts]) as Tensor;
  if (capacity < size) {
    const isWithin = tf.less(tf.cumsum(taken, 1, true), capacity);
    taken = tf.mul(taken, float(isWithin));
  }
  const flat = tf.reshape(taken, [rows, experts]) as Tensor;
  const counts = tf.sum(flat, 0) as Tensor;
  const isTaken = tf.sum(flat, 1) as Tensor;
  // A place for each row: behind the experts before, and behind the rows of this expert before; dropped ones are last.
  const within = tf.add(tf.cumsum(flat, 0, true), tf.cumsum(counts, 0, true));
  const isDropped = tf.sub(1, isTaken);
  const last = tf.mul(isDropped, tf.add(tf.cumsum(isDropped, 0, true), tf.sum(counts)));
  const places = int(tf.add(tf.sum(tf.mul(flat, within), 1), last));
  const token = tf.reshape(tf.range(0, groups * size, 1, 'float32'), [groups, 1, size]);
  const tokens = tf.reshape(tf.tile(token, [1, k, 1]), [rows]) as Tensor;
  const weights = tf.mul(tf.reshape(gates, [rows]), isTaken) as Tensor;
  const ordered = (x: Tensor): Tensor => tf.unsortedSegmentSum(x as tf.Tensor1D, places as tf.Tensor1D, rows);
  return { tokens: int(ordered(tokens)), sizes: int(counts), weights: ordered(weights) };
}

/** Rows of experts that choose `capacity` tokens of each group, those of their highest scores (Zhou et al., 2022). */
export function dispatchByExperts({ scores, kept }: Scored, capacity: number): Dispatch {
  const [groups, size, experts] = scores.shape as [number, number, number];
  const offered = kept ? tf.where(kept, scores, tf.scalar(0)) : scores;
  const byExpert = tf.transpose(offered, [2, 0, 1]);
  const { indices } = tf.topk(ops.stopGradient(byExpert as Tensor), capacity);
  const group = tf.reshape(tf.range(0, groups, 1, 'int32'), [1, groups, 1]);
  const tokens = tf.reshape(tf.add(tf.mul(group, tf.scalar(size, 'int32')), int(indices as Tensor)), [-1]);
  const expert = tf.reshape(tf.range(0, experts, 1, 'int32'), [experts, 1]);
  const cell = tf.add(
    tf.mul(expert, tf.scalar(groups * size, 'int32')),
    tf.reshape(tokens, [experts, groups * capacity]),
  );
  const weights = tf.gather(tf.reshape(byExpert, [-1]), tf.reshape(cell, [-1]) as tf.Tensor1D) as Tensor;
  return { tokens: int(tokens as Tensor), sizes: tf.fill([experts], groups * capacity, 'int32'), weights };
}

/**
 * E² mean(fraction of tokens whose first choice is e · mean score of e) over groups and experts: 1 where both are even (Shazeer
 * et al., 2017; GShard, Lepikhin et al., 2020, algorithm 1).
 */
export function loadBalanceLoss(firstChoice: Tensor, probabilities: Tensor, counted?: Tensor): Tensor {
  const experts = probabilities.shape[2]!;
  const countedOnly = (x: Tensor): Tensor => (counted ? (tf.where(counted, x, tf.scalar(0)) as Tensor) : x);
  const density = tf.mean(countedOnly(firstChoice), 1);
  const proxy = tf.mean(countedOnly(probabilities), 1);
  return tf.mul(tf.mean(tf.mul(density, proxy)), experts * experts);
}

/** Share of a choice's tokens [G, S, E] that the capacity leaves out, where `before` have taken places in the experts. */
export function overCapacity(masks: Tensor, choice: number, capacity: number): Tensor {
  const [groups, k, size, experts] = masks.shape as [number, number, number, number];
  const places = tf.cumsum(tf.reshape(masks, [groups, k * size, experts]), 1, true);
  const own = (x: Tensor): Tensor => tf.slice(x, [0, choice * size, 0], [groups, size, experts]);
  const mask = tf.squeeze(tf.slice(masks, [0, choice, 0, 0], [groups, 1, size, experts]), [1]) as Tensor;
  const over = tf.mul(mask, float(tf.greaterEqual(own(places as Tensor), capacity)));
  return tf.div(tf.sum(over), tf.maximum(tf.sum(mask), 1));
}

/** Expert of each of `count` rows, int32 [count], by the experts' numbers of rows, int32 [E]; E behind the last one's. */
export function expertOfRows(sizes: Tensor, count: number): Tensor {
  const row = tf.reshape(tf.range(0, count, 1, 'float32'), [-1, 1]);
  return int(tf.sum(float(tf.greaterEqual(row, tf.cumsum(float(sizes)))), 1) as Tensor);
}

/**
 * Number of hidden units that are below `threshold` in all rows of their expert, a scalar; all of an expert without rows are.
 *
 * @param hidden [R, H], in the order of the experts. @param sizes int32 [E]: rows of each; rows behind them do not count.
 */
export function deadUnits(hidden: Tensor, sizes: Tensor, threshold: number): Tensor {
  const experts = sizes.shape[0]!;
  const expert = expertOfRows(sizes, hidden.shape[0]!);
  const isLive = float(tf.greaterEqual(ops.stopGradient(hidden), threshold));
  const live = tf.unsortedSegmentSum(isLive as tf.Tensor2D, expert as tf.Tensor1D, experts + 1);
  return tf.sum(float(tf.equal(tf.slice(live, 0, experts), 0)));
}
