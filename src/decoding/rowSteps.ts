/** @file Steps of rows at positions of their own: logits, the likeliest candidates, or the tokens behind drafts. */
import { type HostTensor, type Tensor, tf } from '../compiler/index.js';
import type { Candidates, DrawnIds } from './decodingModel.js';
import { GREEDY, likeliestOf, logprobsAt, sampleIds } from './sampledIds.js';
import type { StepperOptions } from './stepPrograms.js';

type Outputs = Readonly<Record<string, HostTensor>>;

/** A step of rows, and its result on the host. */
export interface RowStep<T> {
  /** Of its program. */
  readonly name: string;
  /** Tokens of each row. */
  readonly tokens: number;
  /** Whether tokens are taken back, for which each needs a place of its own in the state. */
  readonly takesBack?: boolean;
  /** Names of the program's outputs. */
  readonly outputs: readonly string[];
  /** Whether it leaves out tokens that a constraint does not allow; logits are those of the model. */
  readonly isConstrainable?: boolean;
  /**
   * Their values, from the logits [rows * tokens, V] of those that may be drawn.
   *
   * @param allowed under a constraint, above 0 for the tokens that it allows, int32 [rows * tokens, V].
   */
  compute(logits: Tensor, allowed?: Tensor): Readonly<Record<string, Tensor>>;
  read(outputs: Outputs): T;
}

/** Logits [rows, V] with -Infinity at the ids that may not be drawn: those that a padded vocabulary has beyond its tokens. */
export function onlyDrawable(logits: Tensor, mayDraw: (id: number) => boolean = () => true): Tensor {
  const drawable = Array.from({ length: logits.shape[1]! }, (_, id) => mayDraw(id));
  if (drawable.every(Boolean)) return logits;
  const never = tf.fill(logits.shape, Number.NEGATIVE_INFINITY);
  return tf.where(tf.expandDims(tf.tensor1d(drawable, 'bool')), logits, never) as Tensor;
}

const floatsOf = (outputs: Outputs, name: string): Float32Array =>
  (outputs[name]?.data ?? new Float32Array()) as Float32Array;

/** Gives the logits. */
export const logitsStep: RowStep<Float32Array> = {
  name: 'decode_rows',
  tokens: 1,
  outputs: ['logits'],
  compute: (logits) => ({ logits }),
  read: (outputs) => floatsOf(outputs, 'logits'),
};

/** Gives the likeliest tokens, and the log-probabilities of certain ids. */
export const candidatesStep = ({
  count,
  ids,
}: NonNullable<StepperOptions['candidates']>): RowStep<Candidates> => ({
  name: 'decode_candidates',
  tokens: 1,
  isConstrainable: true,
  outputs: ['candidates', 'logprobs', ...(ids.length > 0 ? ['logprobsOf'] : [])],
  compute: (logits, allowed) => {
    const { ids: candidates, logprobs } = likeliestOf(logits, Math.min(count, logits.shape[1]!), allowed);
    const ends = ids.length > 0 && { logprobsOf: logprobsAt(logits, ids, allowed) };
    return { candidates, logprobs, ...ends };
  },
  read: (outputs) => ({
    ids: outputs.candidates!.data as Int32Array,
    logprobs: floatsOf(outputs, 'logprobs'),
    logprobsOf: floatsOf(outputs, 'logprobsOf'),
  }),
});

/** Takes a token of each row and a draft of so many behind it; gives the likeliest token after each. */
export const draftsStep = (draftTokens: number): RowStep<DrawnIds> => ({
  name: 'decode_drafts',
  tokens: draftTokens + 1,
  takesBack: true,
  isConstrainable: true,
  outputs: ['drawn', 'logprobs'],
  compute: (logits, allowed) => {
    const { ids: drawn, logprobs } = sampleIds(logits, GREEDY, { allowed });
    return { drawn, logprobs };
  },
  read: (outputs) => ({ ids: outputs.drawn!.data as Int32Array, logprobs: floatsOf(outputs, 'logprobs') }),
});

/** Takes as many; gives the logits after each, [rows * (draftTokens + 1) * V]. */
export const draftLogitsStep = (draftTokens: number): RowStep<Float32Array> => ({
  ...logitsStep,
  name: 'decode_draft_logits',
  tokens: draftTokens + 1,
  takesBack: true,
});
