/** @file The next token from a row of logits: largest, thresholds, top-k, nucleus, temperature (praxis/sample_decode.py). */
import { allowedLogits, type TokenBits } from './constraints/index.js';
import { adjusted, type LogitAdjustments, type TokensSoFar } from './logitAdjustments.js';

/** Options of drawing a token. */
export interface SamplingRule {
  /** Divides the logits; 0 takes the most likely token. */
  readonly temperature: number;
  /** Only the k most likely tokens; 0 for all. */
  readonly k: number;
  /** Only the fewest likely tokens whose probabilities sum to p or more; null for all. */
  readonly p: number | null;
  /** Only tokens at least this times as likely as the likeliest (Nguyen et al., 2024); default 0, all. */
  readonly minP?: number | undefined;
  /** Only tokens of this probability or more, and the likeliest (Hewitt et al., 2022); default 0, all. */
  readonly epsilonP?: number | undefined;
  /** Whether p is a share of all tokens' probability rather than of the k likeliest; default false. */
  readonly globalNormalize?: boolean | undefined;
  /** Changes of the logits before all of that. */
  readonly adjustments?: LogitAdjustments | undefined;
  /** Scales of guidance, one of each sample, where rows of prompts alternate with those of unconditional ones. */
  readonly guidance?: readonly number[] | undefined;
  /** Whether draws tell the entropy of their distribution under the model; default false. */
  readonly entropy?: boolean | undefined;
  /** Likeliest tokens under the model that draws tell; default 0. */
  readonly topLogprobs?: number | undefined;
}

/** Index of the largest element of a row, the first one among equals. */
export function argmax(row: Float32Array): number {
  let best = 0;
  let largest = row[0]!;
  for (let id = 1; id < row.length; id++) {
    const value = row[id]!;
    if (!(value > largest)) continue;
    largest = value;
    best = id;
  }
  return best;
}

/** The largest element of a row, and the logarithm of the sum of the exponentials of the elements less that. */
function normalizer(row: Float32Array): { readonly max: number; readonly logSum: number } {
  let max = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < row.length; i++) if (row[i]! > max) max = row[i]!;
  let sum = 0;
  for (let i = 0; i < row.length; i++) sum += Math.exp(row[i]! - max);
  return { max, logSum: Math.log(sum) };
}

/** Natural logarithm of the softmax of a row at `id`. */
export function logProbability(row: Float32Array, id: number): number {
  const { max, logSum } = normalizer(row);
  return row[id]! - max - logSum;
}

/** Entropy of the softmax of a row, in nats. */
export function entropyOf(row: Float32Array): number {
  const { max, logSum } = normalizer(row);
  let entropy = 0;
  for (let i = 0; i < row.length; i++) {
    const logprob = row[i]! - max - logSum;
    // A token of probability zero adds nothing.
    if (logprob > Number.NEGATIVE_INFINITY) entropy -= Math.exp(logprob) * logprob;
  }
  return entropy;
}

/** Indices of the `k` largest elements of a row, in descending order, lower indices first among equals. */
export function topK(row: Float32Array, k: number): Int32Array {
  const ids = new Int32Array(Math.min(k, row.length));
  let found = 0;
  for (let id = 0; id < row.length; id++) {
    const value = row[id]!;
    if (found === ids.length && !(value > row[ids[found - 1]!]!)) continue;
    let at = found < ids.length ? found++ : found - 1;
    for (; at > 0 && value > row[ids[at - 1]!]!; at--) ids[at] = ids[at - 1]!;
    ids[at] = id;
  }
  return ids;
}

/**
 * The nucleus (Holtzman et al., 2020) of candidates in descending order: their shortest beginning whose share of the
 * probability of `shared` is `p` or more. Candidates as likely as its last one belong to it.
 */
function nucleus(row: Float32Array, candidates: Int32Array, p: number, shared: Int32Array): Int32Array {
  const max = row[candidates[0]!]!;
  let total = 0;
  for (const id of shared) total += Math.exp(row[id]! - max);
  let kept = 0;
  let mass = 0;
  // Of logits without a softmax all candidates are kept: their sum is NaN.
  while (kept < candidates.length && !(mass >= p * total)) mass += Math.exp(row[candidates[kept++]!]! - max);
  const last = row[candidates[kept - 1]!]!;
  while (kept < candidates.length && row[candidates[kept]!] === last) kept++;
  return candidates.subarray(0, kept);
}

function candidatesOf(row: Float32Array, { k, p, globalNormalize = false }: SamplingRule): Int32Array {
  const restricts = p !== null && p < 1;
  if (k === 0 && !restricts) return allIds(row);
  const sorted = k > 0 ? topK(row, k) : descending(row);
  return restricts ? nucleus(row, sorted, p, globalNormalize ? allIds(row) : sorted) : sorted;
}

/** Whether the rule leaves out tokens below a probability. */
export const hasThreshold = ({ minP = 0, epsilonP = 0 }: SamplingRule): boolean => minP > 0 || epsilonP > 0;

/** A row with -Infinity at the tokens that are less likely than the rule's thresholds. The likeliest stay. */
function aboveThresholds(row: Float32Array, rule: SamplingRule): Float32Array {
  if (!hasThreshold(rule)) return row;
  const { minP = 0, epsilonP = 0 } = rule;
  const { max, logSum } = normalizer(row);
  const least = max + Math.min(0, Math.max(Math.log(minP), logSum + Math.log(epsilonP)));
  return row.map((logit) => (logit < least ? Number.NEGATIVE_INFINITY : logit));
}

function allIds(row: Float32Array): Int32Array {
  const ids = new Int32Array(row.length);
  for (let id = 0; id < ids.length; id++) ids[id] = id;
  return ids;
}

/** All indices of a row, largest element first, lower indices first among equals. */
function descending(row: Float32Array): Int32Array {
  // Typed arrays of numbers are sorted several times as fast as by a function that compares: a number holds the place of
  // the element among all float32, from the largest down, and behind it the index.
  const one = new Float32Array(1);
  const bits = new Uint32Array(one.buffer);
  const keys = new Float64Array(row.length);
  for (let id = 0; id < row.length; id++) {
    // -0 becomes 0, its equal.
    one[0] = row[id]! + 0;
    const pattern = bits[0]!;
    const place = pattern >>> 31 === 0 ? 2 ** 31 - 1 - pattern : pattern;
    keys[id] = place * row.length + id;
  }
  keys.sort();
  const ids = new Int32Array(row.length);
  for (let i = 0; i < ids.length; i++) ids[i] = keys[i]! % row.length;
  return ids;
}

/** Tokens that may be drawn: the probability of each is its weight over the sum of all. */
export interface Distribution {
  readonly ids: Int32Array;
  readonly weights: Float64Array;
  readonly total: number;
}

/** Memory of a row under a constraint, which no draw keeps: rows of their own would be collected, a quarter of a megabyte a token. */
let constrainedRow = new Float32Array();

function constrained(logits: Float32Array, allowed: TokenBits): Float32Array {
  if (constrainedRow.length !== logits.length) constrainedRow = new Float32Array(logits.length);
  return allowedLogits(logits, allowed, constrainedRow);
}

/**
 * The distribution that a row of logits, [V], is drawn from. Adjustments and constraints come first, then minP and epsilonP,
 * top-k among the rest, and the nucleus among these, all before the temperature; then it is softmax(logits / temperature) of
 * the rest.
 *
 * @param tokens those of the row so far, which adjustments read.
 * @param allowed tokens that may be drawn; undefined for all.
 */
export function distributionOf(
  logits: Float32Array,
  rule: SamplingRule,
  tokens?: TokensSoFar,
  allowed?: TokenBits,
): Distribution {
  const own = rule.adjustments ? adjusted(logits, rule.adjustments, tokens!) : logits;
  const changed = allowed ? constrained(own, allowed) : own;
  if (rule.temperature === 0 || rule.k === 1)
    return { ids: Int32Array.of(argmax(changed)), weights: Float64Array.of(1), total: 1 };
  const row = aboveThresholds(changed, rule);
  const ids = candidatesOf(row, rule);
  let max = Number.NEGATIVE_INFINITY;
  for (const id of ids) max = Math.max(max, row[id]!);
  const weights = new Float64Array(ids.length);
  let total = 0;
  for (let i = 0; i < weights.length; i++) {
    weights[i] = Math.exp((row[ids[i]!]! - max) / rule.temperature);
    total += weights[i]!;
  }
  return { ids, weights, total };
}

/** Draws a token. @param uniform a number in [0, 1): the place in the cumulative distribution that is drawn. */
export function drawFrom({ ids, weights, total }: Distribution, uniform: number): number {
  let left = uniform * total;
  let drawn = 0;
  for (let i = 0; i < weights.length; i++) {
    const weight = weights[i]!;
    if (weight === 0) continue;
    drawn = i;
    if (left < weight) break;
    left -= weight;
  }
  return ids[drawn]!;
}

/** Draws a token from a row of logits, [V]: see `distributionOf` and `drawFrom`. */
export const sampleId = (
  logits: Float32Array,
  rule: SamplingRule,
  uniform: number,
  tokens?: TokensSoFar,
  allowed?: TokenBits,
): number => drawFrom(distributionOf(logits, rule, tokens, allowed), uniform);
