/** @file Preprocessors that cut and join token ids (t5.data.preprocessors). */
import { z } from 'zod';
import { InputError } from '../inputErrors.js';
import { concatenate } from '../text/tokens.js';
import { BasePreprocessor, type Example, type PreprocessContext, tokensOf } from './preprocessor.js';

const feature = z.string().default('targets').describe('Name of the feature.');

/** `given`, or the feature's length in `taskFeatureLengths`. @throws InputError where there is neither */
function lengthOf(
  given: number | null,
  name: string,
  lengths: PreprocessContext['lengths'],
  field: string,
): number {
  const length = given ?? lengths[name];
  if (length !== undefined) return length;
  throw new InputError(`${field} is null, and taskFeatureLengths has no '${name}'. Set one of them.`);
}

/** Cuts a feature into pieces, each an example with the other values (split_tokens). */
export class SplitTokens extends BasePreprocessor.with({
  feature,
  maxTokensPerSegment: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe("Ids of a piece, but of the last one; null: the feature's length in taskFeatureLengths."),
  minTokensPerSegment: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('Where given, each example is cut into pieces of a random length from here on, log-uniform.'),
}) {
  override *apply(examples: readonly Example[], { lengths, draws }: PreprocessContext): Iterable<Example> {
    const { feature, minTokensPerSegment: min } = this.hp;
    const max = lengthOf(this.hp.maxTokensPerSegment, feature, lengths, 'SplitTokens.maxTokensPerSegment');
    for (const example of examples) {
      const tokens = tokensOf(example, feature);
      const length = min === null ? max : Math.floor(min * (max / min) ** draws.uniform());
      for (let at = 0; at < tokens.length; at += length)
        yield { ...example, [feature]: tokens.subarray(at, at + length) };
    }
  }
}

/** Joins the ids of examples that follow one another, and leaves their other values out (reduce_concat_tokens). */
export class ReduceConcatTokens extends BasePreprocessor.with({
  feature,
  batchSize: z.int().positive().default(128).describe('Examples that make one.'),
}) {
  override get examplesAtOnce(): number {
    return this.hp.batchSize;
  }

  override apply(examples: readonly Example[]): Iterable<Example> {
    const { feature } = this.hp;
    return [{ [feature]: concatenate(examples.map((example) => tokensOf(example, feature))) }];
  }
}

/** A piece of each example that begins at a random multiple of its length (select_random_chunk). */
export class SelectRandomChunk extends BasePreprocessor.with({
  feature,
  maxLength: z.int().positive().default(65536).describe('Ids of the piece, and the distance of beginnings.'),
}) {
  override *apply(examples: readonly Example[], { draws }: PreprocessContext): Iterable<Example> {
    const { feature, maxLength } = this.hp;
    for (const example of examples) {
      const tokens = tokensOf(example, feature);
      if (tokens.length === 0) continue;
      const start = maxLength * draws.below(Math.ceil(tokens.length / maxLength));
      yield { ...example, [feature]: tokens.subarray(start, start + maxLength) };
    }
  }
}
