/** @file tfjs kernels that no program can hold, with the reason and what to do instead. */
import { CompilerError } from '../program/tensors.js';

/** Why a kernel cannot be compiled. */
export interface Refusal {
  /** The function that runs it: 'tf.image.nonMaxSuppression'. */
  readonly call: string;
  readonly reason: string;
  /** What to do instead, as an imperative. */
  readonly instead: string;
  /** Whether a call on constants is a constant, worked out as the program is traced. */
  readonly takesConstants?: boolean;
}

const outside = 'call it outside of the compiled function, on tensors that the function returns';

const sizedByValues = (call: string, what: string): Refusal => ({
  call,
  reason: `${what} depends on values, and a program has fixed shapes`,
  instead: outside,
  takesConstants: true,
});

const ofStrings = (call: string): Refusal => ({
  call,
  reason: 'programs hold no strings',
  instead: 'call it on the inputs, before the compiled function',
});

/** Refused kernels, by name. */
export const REFUSED: Readonly<Record<string, Refusal>> = {
  NonMaxSuppressionV3: sizedByValues('tf.image.nonMaxSuppression', 'the number of boxes that it keeps'),
  NonMaxSuppressionV4: sizedByValues('tf.image.nonMaxSuppressionPadded', 'the number of boxes that it keeps'),
  NonMaxSuppressionV5: sizedByValues(
    'tf.image.nonMaxSuppressionWithScore',
    'the number of boxes that it keeps',
  ),
  RaggedGather: sizedByValues('tf.raggedGather', 'the length of each row'),
  RaggedRange: sizedByValues('tf.raggedRange', 'the length of each row'),
  RaggedTensorToTensor: sizedByValues('tf.raggedTensorToTensor', 'the length of each row'),
  SparseFillEmptyRows: sizedByValues('tf.sparse.sparseFillEmptyRows', 'the number of elements'),
  Unique: sizedByValues('tf.unique', 'the number of different elements'),
  StaticRegexReplace: ofStrings('tf.string.staticRegexReplace'),
  StringNGrams: ofStrings('tf.string.stringNGrams'),
  StringSplit: ofStrings('tf.string.stringSplit'),
  StringToHashBucketFast: ofStrings('tf.string.stringToHashBucketFast'),
  Multinomial: {
    call: 'tf.multinomial',
    reason: 'it draws on the host, and every run would have the same numbers',
    instead: 'call ops.categorical',
  },
  FromPixels: {
    call: 'tf.browser.fromPixels',
    reason: 'it reads an image of the browser',
    instead: 'call it before the compiled function, and pass its tensor',
  },
  Draw: {
    call: 'tf.browser.draw',
    reason: 'it draws on a canvas of the browser',
    instead: outside,
  },
};

/** The error for a call of a refused kernel. */
export const refusalError = ({ call, reason, instead }: Refusal): CompilerError =>
  new CompilerError(`${call} cannot be compiled, since ${reason}: ${instead}.`);
