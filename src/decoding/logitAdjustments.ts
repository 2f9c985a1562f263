/** @file Adjustments of logits before a token is drawn: biases, penalties for repetition, ends that come too early. */
import { type Tensor, tf } from '../compiler/index.js';

/** Changes of a row's logits, in this order. */
export interface LogitAdjustments {
  /** Added to the logits of ids. */
  readonly logitBias: Readonly<Record<string, number>>;
  /** Divides positive logits of tokens that the prompt or its continuation has, multiplies others (Keskar et al., 2019). */
  readonly repetitionPenalty: number;
  /** Subtracted from the logits of tokens that the continuation has. */
  readonly presencePenalty: number;
  /** Subtracted from the logits of tokens for each time that the continuation has them. */
  readonly frequencyPenalty: number;
  /** Tokens that a continuation has at least before one of `eosIds` may be drawn. */
  readonly minDecodeSteps: number;
  readonly eosIds: readonly number[];
}

/** The tokens of a row so far. */
export interface TokensSoFar {
  /** Prompt and continuation. */
  readonly ids: ArrayLike<number>;
  readonly promptLength: number;
}

/** The adjustments, or undefined where they change nothing. */
export function adjustmentsOf(given: LogitAdjustments): LogitAdjustments | undefined {
  const { logitBias, repetitionPenalty, presencePenalty, frequencyPenalty, minDecodeSteps, eosIds } = given;
  const endsEarly = minDecodeSteps > 0 && eosIds.length > 0;
  const isNeutral = repetitionPenalty === 1 && presencePenalty === 0 && frequencyPenalty === 0;
  return isNeutral && !endsEarly && Object.keys(logitBias).length === 0 ? undefined : given;
}

/** A row's logits, [V], after the adjustments. Biases of ids beyond the vocabulary have no effect. */
export function adjusted(
  logits: Float32Array,
  by: LogitAdjustments,
  { ids, promptLength }: TokensSoFar,
): Float32Array {
  const row = logits.slice();
  for (const [id, bias] of Object.entries(by.logitBias))
    if (Number(id) < row.length) row[Number(id)]! += bias;
  const counts = new Map<number, number>();
  for (let i = 0; i < ids.length; i++)
    counts.set(ids[i]!, (counts.get(ids[i]!) ?? 0) + (i < promptLength ? 0 : 1));
  for (const [id, count] of counts) {
    const logit = row[id]!;
    const repeated = logit > 0 ? logit / by.repetitionPenalty : logit * by.repetitionPenalty;
    row[id] = repeated - (count > 0 ? by.presencePenalty : 0) - count * by.frequencyPenalty;
  }
  if (ids.length - promptLength < by.minDecodeSteps)
    for (const id of by.eosIds) if (id < row.length) row[id] = Number.NEGATIVE_INFINITY;
  return row;
}

/** Tokens of rows within a program. */
export interface TokenCounts {
  /** How many times the continuation of each row has each id, int32 [B, V]. */
  readonly counts: Tensor;
  /** Whether the prompt of each row has each id, int32 [B, V]. */
  readonly prompted: Tensor;
  /** Tokens of each continuation so far, int32 [B]. */
  readonly steps: Tensor;
}

const zero = (): Tensor => tf.scalar(0, 'int32');

/** As `adjusted`, of logits [B, V] within a program. */
export function adjustedLogits(
  logits: Tensor,
  by: LogitAdjustments,
  { counts, prompted, steps }: TokenCounts,
): Tensor {
  const size = logits.shape[1]!;
  const byId = (value: (id: number) => number): Tensor =>
    tf.tensor2d(
      Array.from({ length: size }, (_, id) => value(id)),
      [1, size],
    ) as Tensor;
  let row = logits;
  if (Object.keys(by.logitBias).length > 0)
    row = tf.add(
      row,
      byId((id) => by.logitBias[id] ?? 0),
    );
  if (by.repetitionPenalty !== 1) {
    const isSeen = tf.logicalOr(tf.greater(counts, zero()), tf.greater(prompted, zero()));
    const factor = tf.scalar(by.repetitionPenalty);
    const repeated = tf.where(tf.greater(row, tf.scalar(0)), tf.div(row, factor), tf.mul(row, factor));
    row = tf.where(isSeen, repeated, row);
  }
  if (by.presencePenalty !== 0) {
    const penalized = tf.sub(row, tf.scalar(by.presencePenalty));
    row = tf.where(tf.greater(counts, zero()), penalized, row);
  }
  if (by.frequencyPenalty !== 0)
    row = tf.sub(row, tf.mul(tf.cast(counts, 'float32'), tf.scalar(by.frequencyPenalty)));
  if (by.minDecodeSteps > 0) {
    const isEnd = tf.greater(
      byId((id) => (by.eosIds.includes(id) ? 1 : 0)),
      tf.scalar(0),
    );
    const isEarly = tf.less(tf.expandDims(steps, -1), tf.scalar(by.minDecodeSteps, 'int32'));
    const never = tf.fill(row.shape, Number.NEGATIVE_INFINITY);
    row = tf.where(tf.logicalAnd(isEnd, isEarly), never, row);
  }
  return row;
}

/** Counts with the tokens `ids` [B] of those rows that are behind their prompts. */
export function countedWith(counts: Tensor, ids: Tensor, isDrawn: Tensor): Tensor {
  const columns = tf.range(0, counts.shape[1]!, 1, 'int32');
  const isToken = tf.equal(tf.expandDims(columns), tf.expandDims(ids, -1));
  const isCounted = tf.logicalAnd(isToken, tf.expandDims(isDrawn, -1));
  return tf.where(isCounted, tf.add(counts, tf.scalar(1, 'int32')), counts) as Tensor;
}
