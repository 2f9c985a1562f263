/** @file Linear attention with decay and with the delta rule, in chunks: products within a chunk, a scan over chunks. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { column, type Steps } from './recurrence.js';
import { unitLowerInverse } from './unitLowerInverse.js';

/** Tokens of a chunk. */
export const chunkSizeField = z
  .int()
  .positive()
  .default(64)
  .describe('Tokens that are multiplied at once; the result depends on it by rounding alone.');

/** Operands of a linear attention. */
export interface LinearAttention {
  /** [B, T, H, K]. */
  readonly query: Tensor;
  /** [B, T, H, K]. */
  readonly key: Tensor;
  /** [B, T, H, V]. */
  readonly value: Tensor;
  /** [B, T, H]: logarithm of the decay before each token, 0 or less. */
  readonly logDecay: Tensor;
  /** [B, T, H]: strength of the delta rule; without it, values are added as they are. */
  readonly beta?: Tensor | undefined;
}

/** Adds padding at the end of time, [B, T, …] to [B, T + count, …]. */
const lengthened = (x: Tensor, count: number): Tensor =>
  count === 0
    ? x
    : tf.pad(
        x,
        x.shape.map((_, axis): [number, number] => [0, axis === 1 ? count : 0]),
      );

/** [B, T, H, …] as chunks: [N, B, H, C, …]. */
function chunked(x: Tensor, chunk: number): Tensor {
  const [batch, time, heads, ...rest] = x.shape as [number, number, number, ...number[]];
  const split = tf.reshape(x, [batch, time / chunk, chunk, heads, ...rest]);
  return tf.transpose(split, [1, 0, 3, 2, ...rest.map((_, i) => i + 4)]);
}

/** e^(x) where `mask`, 0 elsewhere, whatever x is there. */
const decayWhere = (mask: Tensor, x: Tensor): Tensor =>
  tf.where(mask, tf.exp(tf.where(mask, x, tf.scalar(0))), tf.scalar(0));

/**
 * `S_t = e^(g_t) S_(t-1) + k_t v_tᵀ`, `o_t = S_tᵀ q_t`: retention (Sun et al., 2023), and state spaces whose decay is a
 * number (Mamba-2, Dao and Gu, 2024). With `beta`, the gated delta rule (Yang et al., 2025):
 * `S_t = e^(g_t) S_(t-1) + β_t k_t (v_t - e^(g_t) S_(t-1)ᵀ k_t)ᵀ`.
 *
 * Chunks of `chunkSize` tokens are products; from chunk to chunk goes the state [B, H, K, V], zeros before a sequence.
 *
 * @returns outputs [B, T, H, V], and the state after the last token.
 */
export function linearAttention(
  { query, key, value, logDecay, beta }: LinearAttention,
  state: Tensor,
  steps: Pick<Steps, 'starts' | 'tokens'>,
  chunkSize: number,
): readonly [outputs: Tensor, state: Tensor] {
  const [batch, time, heads, depth] = value.shape as [number, number, number, number];
  const chunk = Math.min(chunkSize, Math.max(time, 1));
  const extra = (chunk - (time % chunk)) % chunk;
  const kept = (x: Tensor): Tensor =>
    steps.tokens ? tf.where(column(steps.tokens, x.rank), x, tf.scalar(0)) : x;
  const chunks = (x: Tensor): Tensor => chunked(lengthened(x, extra), chunk);
  const [q, k, v] = [chunks(query), chunks(kept(key)), chunks(kept(value))];
  const decay = tf.cumsum(chunks(kept(logDecay)), 3);
  // Which sequence of its chunk a token belongs to: 0 for what goes on from the state, [N, B, 1, C].
  const sequence = steps.starts && tf.cumsum(chunks(tf.expandDims(tf.cast(steps.starts, 'int32'), -1)), 3);
  const rows = (x: Tensor): Tensor => tf.expandDims(x, -1);
  const columns = (x: Tensor): Tensor => tf.expandDims(x, -2);
  const places = tf.range(0, chunk, 1, 'int32');
  const isPast = tf.greaterEqual(rows(places), columns(places));
  const sees = sequence ? tf.logicalAnd(isPast, tf.equal(rows(sequence), columns(sequence))) : isPast;
  // Decay from each token to each later one, [N, B, H, C, C].
  const between = tf.sub(rows(decay), columns(decay));
  const within = decayWhere(tf.broadcastTo(sees, between.shape), between);
  const last = tf.slice(decay, [0, 0, 0, chunk - 1], [-1, -1, -1, 1]);
  const toEnd = tf.sub(last, decay);
  const lastSequence = sequence && tf.slice(sequence, [0, 0, 0, chunk - 1], [-1, -1, -1, 1]);
  const same = (x: Tensor, a: Tensor | undefined, b: Tensor | number): Tensor =>
    a ? decayWhere(tf.broadcastTo(tf.equal(a, b), x.shape), x) : tf.exp(x);
  /** Decay from the state to each token, and from each token and the state to the end of the chunk. */
  const fromState = rows(same(decay, sequence, 0));
  const keyToEnd = tf.mul(k, rows(same(toEnd, sequence, lastSequence!)));
  const stateToEnd = rows(same(last, lastSequence, 0));
  const scores = tf.mul(tf.matMul(q, k, false, true), within);
  const fromQuery = tf.mul(q, fromState);
  const ofDelta = beta && deltaRule(k, v, chunks(kept(beta)), within, fromState);
  const xs = {
    ...{ scores, fromQuery, keyToEnd, stateToEnd },
    value: ofDelta?.value ?? v,
    ...(ofDelta && { fromKey: ofDelta.fromKey }),
  };
  const turn = (before: Tensor, at: Record<keyof typeof xs, Tensor>): [Tensor, Tensor] => {
    const values = at.fromKey ? tf.sub(at.value, tf.matMul(at.fromKey, before)) : at.value;
    const outputs = tf.add(tf.matMul(at.scores, values), tf.matMul(at.fromQuery, before));
    const after = tf.add(tf.mul(before, at.stateToEnd), tf.matMul(at.keyToEnd, values, true));
    return [after, outputs];
  };
  const [after, outputs] = ops.scan(turn as never, state, xs as never) as unknown as [Tensor, Tensor];
  const joined = tf.reshape(tf.transpose(outputs, [1, 0, 3, 2, 4]), [batch, time + extra, heads, depth]);
  return [extra === 0 ? joined : tf.slice(joined, [0, 0, 0, 0], [batch, time, heads, depth]), after];
}

/**
 * What the delta rule writes in place of values, `value - fromKey S` with the state S before the chunk: the solution of a
 * triangular system, for what a token writes depends on what those before it wrote (the WY form of Yang et al., 2024).
 */
function deltaRule(k: Tensor, v: Tensor, beta: Tensor, within: Tensor, fromState: Tensor) {
  const strength = tf.expandDims(beta, -1);
  const strongKey = tf.mul(k, strength);
  const chunk = k.shape.at(-2)!;
  const places = tf.range(0, chunk, 1, 'int32');
  const isBefore = tf.greater(tf.expandDims(places, -1), tf.expandDims(places, -2));
  const products = tf.mul(tf.matMul(strongKey, k, false, true), within);
  const solve = unitLowerInverse(tf.where(tf.broadcastTo(isBefore, products.shape), products, tf.scalar(0)));
  return {
    value: tf.matMul(solve, tf.mul(v, strength)),
    fromKey: tf.matMul(solve, tf.mul(strongKey, fromState)),
  };
}
