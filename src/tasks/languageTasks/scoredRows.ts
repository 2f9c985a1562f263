/** @file Rows of tokens of which a model gives the log-likelihood of the last ones. */

/** The prediction that rows are scored by: the negative log-likelihood of a row's weighed tokens. */
export const SCORE = 'perSequenceXent';

/** Ids behind which others are scored. */
export interface ScoredRow {
  /** The context, and the tokens that are scored. */
  readonly ids: readonly number[];
  /** Of the tokens that are scored, the first; at least 1. */
  readonly from: number;
}

/** Encoding of texts for scores. */
export interface Encoder {
  readonly encode: (text: string) => ArrayLike<number>;
  /** Stands before a text without a context: the beginning or the end of texts. */
  readonly prefixId: number;
  /** Tokens that a model takes at once, at most. */
  readonly maxTokens: number;
}

/**
 * The row of a continuation, as lm-evaluation-harness has it: spaces at the end of the context are encoded with the continuation,
 * and a context that is too long loses its beginning.
 */
export function continuationRow(
  { encode, prefixId, maxTokens }: Encoder,
  context: string,
  continuation: string,
): ScoredRow {
  const trimmed = context.trimEnd();
  const rest = context.slice(trimmed.length) + continuation;
  const before = trimmed === '' ? [prefixId] : Array.from(encode(trimmed));
  const whole = Array.from(encode(trimmed === '' ? rest : trimmed + rest));
  const scored = trimmed === '' ? whole : whole.slice(before.length);
  const ids = [...before, ...scored];
  const lost = Math.max(0, ids.length - (maxTokens + 1));
  return { ids: ids.slice(lost), from: Math.max(1, before.length - lost) };
}

/**
 * The rows of a text, which score each of its tokens once: disjoint windows of `maxTokens`, the last one with the tokens before it as
 * its context (lm-evaluation-harness' get_rolling_token_windows, with a context of 1).
 */
export function rollingRows({ encode, prefixId, maxTokens }: Encoder, text: string): ScoredRow[] {
  const ids = Array.from(encode(text));
  const rows: ScoredRow[] = [];
  for (let done = 0; done < ids.length; ) {
    const count = Math.min(maxTokens, ids.length - done);
    const end = done + count;
    const window = done === 0 ? [prefixId, ...ids.slice(0, end)] : ids.slice(end - maxTokens - 1, end);
    rows.push({ ids: window, from: window.length - count });
    done = end;
  }
  return rows;
}

/** Arrays of a batch of rows, padded to `length`. */
export interface ScoredBatch {
  readonly ids: Int32Array;
  readonly labels: Int32Array;
  /** 1 for tokens that are scored. */
  readonly weights: Float32Array;
  readonly paddings: Float32Array;
}

/** A batch of rows; rows that it lacks are padding. */
export function scoredBatch(rows: readonly ScoredRow[], size: number, length: number): ScoredBatch {
  const [ids, labels] = [new Int32Array(size * length), new Int32Array(size * length)];
  const [weights, paddings] = [new Float32Array(size * length), new Float32Array(size * length).fill(1)];
  for (const [row, { ids: tokens, from }] of rows.entries())
    for (let i = 0; i + 1 < tokens.length; i++) {
      const at = row * length + i;
      ids[at] = tokens[i]!;
      labels[at] = tokens[i + 1]!;
      weights[at] = i + 1 >= from ? 1 : 0;
      paddings[at] = 0;
    }
  return { ids, labels, weights, paddings };
}
