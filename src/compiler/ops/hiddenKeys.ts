/** @file Keys that a query may not see: outside its window and behind the prefix, of another segment, beyond those that are valid. */
import type { Attrs } from '../program/ir.js';
import * as tf from '../tfjs/tfjs.js';
import { hostConstant } from '../trace/tracing.js';

/** Logit of a hidden key: below anything that an additive mask produces for a visible one. */
const UNSEEN = Number.NEGATIVE_INFINITY;

/** Keys that a query sees beside the one at its own position; Infinity where nothing bounds them. */
export interface Window {
  readonly before: number;
  readonly after: number;
}

/** The window of an attention; queries are at the last positions of the keys. */
export const windowOf = ({ causal, before, after }: Attrs): Window => ({
  before: (before as number | undefined) ?? Number.POSITIVE_INFINITY,
  after: causal ? 0 : ((after as number | undefined) ?? Number.POSITIVE_INFINITY),
});

/** How many keys after its own position a query sees of the prefix. */
export const prefixReach = ({ after }: Attrs): number =>
  (after as number | undefined) ?? Number.POSITIVE_INFINITY;

const isBounded = ({ before, after }: Window): boolean => before !== Infinity || after !== Infinity;

/** Operands behind query, key and value. */
export interface AttentionExtras<T> {
  readonly mask?: T;
  /** Logits beside those of the keys, for no value. */
  readonly sinks?: T;
  readonly segments?: { readonly queries: T; readonly keys: T };
  /** Number of valid keys. */
  readonly visible?: T;
  /** Number of leading keys that are seen from before their positions too. */
  readonly prefix?: T;
  /** By which weights are dropped. */
  readonly dropKey?: T;
}

/** Names the operands behind query, key and value. */
export function extrasOf<T>(
  operands: readonly T[],
  { sunk, segmented, counted, prefixed, keepProb }: Attrs,
): AttentionExtras<T> {
  const rest = [...operands];
  const dropKey = keepProb === undefined ? {} : { dropKey: rest.pop()! };
  const prefix = prefixed ? { prefix: rest.pop()! } : {};
  const visible = counted ? { visible: rest.pop()! } : {};
  const [queries, keys] = segmented ? rest.splice(-2) : [];
  const sinks = sunk ? { sinks: rest.pop()! } : {};
  return {
    ...(rest.length > 0 && { mask: rest[0]! }),
    ...sinks,
    ...(segmented && { segments: { queries: queries!, keys: keys! } }),
    ...visible,
    ...prefix,
    ...dropKey,
  };
}

/** 0 where a query may see a key, else -Infinity: [queries, keys]. */
function windowMask(queries: number, keys: number, { before, after }: Window): tf.Tensor {
  const spec = { shape: [queries, keys], dtype: 'float32' as const };
  return hostConstant(`window ${queries} ${keys} ${before} ${after}`, spec, () => {
    const values = new Float32Array(queries * keys).fill(UNSEEN);
    for (let t = 0; t < queries; t++) {
      const position = t + keys - queries;
      const [begin, end] = [Math.max(0, position - before), Math.max(0, position + after + 1)];
      values.fill(0, t * keys + Math.min(begin, keys), t * keys + Math.min(end, keys));
    }
    return values;
  });
}

/** A number for each batch item, or for all. */
const ofItems = (counts: tf.Tensor): tf.Tensor => tf.reshape(counts, [-1, 1, 1, 1]);

/** Whether a query may see a key by their positions: bool [B, 1, queries, keys], where B may be 1. */
function isInSight(
  queries: number,
  keys: number,
  { visible, prefix }: AttentionExtras<tf.Tensor>,
  attrs: Attrs,
): tf.Tensor {
  const { before, after } = windowOf(attrs);
  const end = ofItems(visible ?? tf.scalar(keys, 'int32'));
  const key = tf.reshape(tf.range(0, keys, 1, 'int32'), [1, 1, 1, keys]);
  const position = tf.add(tf.reshape(tf.range(-queries, 0, 1, 'int32'), [1, 1, queries, 1]), end);
  const bounded = (bound: number) => tf.scalar(Math.min(bound, 2 ** 30), 'int32');
  const isWithin = (bound: number) => tf.lessEqual(key, tf.add(position, bounded(bound)));
  const conditions = visible ? [tf.less(key, end)] : [];
  if (before !== Infinity) conditions.push(tf.greaterEqual(key, tf.sub(position, bounded(before))));
  if (after !== Infinity) {
    const isOfPrefix = prefix && tf.logicalAnd(tf.less(key, ofItems(prefix)), isWithin(prefixReach(attrs)));
    conditions.push(isOfPrefix ? tf.logicalOr(isWithin(after), isOfPrefix) : isWithin(after));
  }
  return conditions.reduce((all, condition) => tf.logicalAnd(all, condition));
}

/**
 * Logits [B, N, T, S] with -Infinity where a key is hidden.
 *
 * @returns the logits, and whether a query may be left without a key.
 */
export function withHiddenKeys(
  logits: tf.Tensor,
  extras: AttentionExtras<tf.Tensor>,
  attrs: Attrs,
): { readonly logits: tf.Tensor; readonly mayHideAll: boolean } {
  const [queries, keys] = logits.shape.slice(-2) as [number, number];
  const { segments, visible, prefix } = extras;
  const window = windowOf(attrs);
  const only = (seen: tf.Tensor, all: tf.Tensor) => tf.where(seen, all, tf.scalar(UNSEEN)) as tf.Tensor;
  let shown = logits;
  if (visible || (prefix && window.after !== Infinity))
    shown = only(isInSight(queries, keys, extras, attrs), shown);
  else if (isBounded(window)) shown = tf.add(shown, windowMask(queries, keys, window));
  if (segments) {
    const own = tf.reshape(segments.queries, [-1, 1, queries, 1]);
    shown = only(tf.equal(own, tf.reshape(segments.keys, [-1, 1, 1, keys])) as tf.Tensor, shown);
  }
  const mayHideAll = visible !== undefined || segments !== undefined || (isBounded(window) && queries > keys);
  return { logits: shown, mayHideAll };
}

/** Softmax of logits [B, N, T, S] and of each head's sink [N], without the sinks' weights: [B, N, T, S]. */
export function softmaxWithSinks(logits: tf.Tensor, sinks: tf.Tensor): tf.Tensor {
  const [batch, heads, queries, keys] = logits.shape as [number, number, number, number];
  const column = tf.broadcastTo(tf.reshape(sinks, [1, heads, 1, 1]), [batch, heads, queries, 1]);
  const weights = tf.softmax(tf.concat([logits, column], -1));
  return tf.slice(weights, [0, 0, 0, 0], [batch, heads, queries, keys]);
}

/** Softmax that gives zeros where every logit is -Infinity. */
export function softmaxOfSeen(logits: tf.Tensor): tf.Tensor {
  const unseen = tf.equal(tf.max(logits, -1, true), UNSEEN);
  const zeros = tf.zerosLike(logits);
  return tf.where(unseen, zeros, tf.softmax(tf.where(unseen, zeros, logits)));
}
