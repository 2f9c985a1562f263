/** @file Decodable: the contract of models that continue sequences of tokens. */
import { type Tensor, type TensorSpec, tf } from '../compiler/index.js';
import type { DecodeStateSpec, StepArgs } from '../layers/index.js';

/**
 * A model that continues sequences. Its methods run within `runInContext`; they read and replace the context's
 * `decodeState`, which the stepper keeps from step to step, and whose rows it moves and copies.
 */
export interface Decodable {
  /** Number of token ids; a position has as many logits. */
  readonly vocabSize: number;

  /** Paths of the arrays of a batch that `begin` reads, such as an encoder's ids; none where a decode begins with tokens alone. */
  readonly promptNames?: readonly string[];

  /**
   * Whether the tokens of a prompt see each other, as in prefix language models; false where absent. A decode then begins with
   * one `extendStep` of all prompts up to their last tokens, whose `prefix` has their number. The last tokens, of which the
   * first drawn ones are the labels, come behind them as in training.
   */
  readonly seesWholePrompt?: boolean;

  /**
   * Names under which the batches of an encoder-decoder nest the tokens that it reads, and those that it continues: these
   * begin with their first one. Absent where the tokens of the batch itself are continued.
   */
  readonly nested?: { readonly source: string; readonly target: string } | undefined;

  /**
   * State of `rows` sequences of at most `seqLen` tokens, by path; zeros start a decode.
   *
   * @param prompt specs of the arrays of `promptNames`.
   */
  initialDecodeState(
    rows: number,
    seqLen: number,
    prompt?: Readonly<Record<string, TensorSpec>>,
  ): Record<string, DecodeStateSpec>;

  /** Starts a decode: stores in the state values that all steps read, such as an encoder's output. */
  readonly begin?: ((prompt: Readonly<Record<string, Tensor>>) => void) | undefined;

  /**
   * Logits [B, vocabSize] of the token after each of `ids`, int32 [B], which stand at `timeStep`; or [B, T, vocabSize] after
   * those of `ids` [B, T] from there on. With `logitsAt` it may give those of one of the T alone, [B, vocabSize].
   */
  extendStep(ids: Tensor, args: StepArgs): Tensor;
}

/** Logits [1, vocabSize] of the token after the last of `ids` [1, T] that `length` counts. */
export function lastLogits(
  model: Decodable,
  ids: Tensor,
  args: StepArgs & { readonly length: Tensor },
): Tensor {
  const logitsAt = tf.sub(args.length, tf.scalar(1, 'int32')) as Tensor;
  const logits = model.extendStep(ids, { ...args, logitsAt });
  if (logits.shape.length === 2) return logits;
  return tf.reshape(tf.gather(logits, logitsAt, 1), [1, model.vocabSize]) as Tensor;
}

/** Whether a model implements `Decodable`. */
export function isDecodable<M extends object>(model: M): model is M & Decodable {
  const { vocabSize, initialDecodeState, extendStep } = model as Partial<Decodable>;
  return (
    typeof vocabSize === 'number' &&
    typeof initialDecodeState === 'function' &&
    typeof extendStep === 'function'
  );
}

/** The path in batches of an array of the tokens that a model continues. */
export const targetPath = ({ nested }: Pick<Decodable, 'nested'>, array: string): string =>
  nested === undefined ? array : `${nested.target}.${array}`;
