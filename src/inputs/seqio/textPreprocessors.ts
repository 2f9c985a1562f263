/** @file Preprocessors of whole examples: renaming, tokenizing, ends, trimming, filters (seqio.preprocessors). */
import { z } from 'zod';
import { ConfigError } from '../../hparams/index.js';
import { InputError } from '../inputErrors.js';
import type { Feature } from './feature.js';
import {
  BasePreprocessor,
  type Example,
  exampleFunction,
  MapPreprocessor,
  type PreprocessContext,
  tokensOf,
  valueAt,
} from './preprocessor.js';

/** Renames values (seqio's rekey): the result has the names of `keyMap` alone. */
export class Rekey extends MapPreprocessor.with({
  keyMap: z
    .record(z.string(), z.string().nullable())
    .describe('The old name by each new one; null gives an empty text.'),
}) {
  protected override map(example: Example): Example {
    const pairs = Object.entries(this.hp.keyMap);
    return Object.fromEntries(pairs.map(([name, old]) => [name, old === null ? '' : valueAt(example, old)]));
  }
}

/** Encodes the texts of the task's features. */
export class Tokenize extends MapPreprocessor.with({
  copyPretokenized: z
    .boolean()
    .default(false)
    .describe('Whether the text stays, as `<feature>Pretokenized`, for metrics.'),
}) {
  protected override map(example: Example, { features }: PreprocessContext): Example {
    const made: Record<string, unknown> = { ...example };
    for (const [name, feature] of Object.entries(features)) {
      const text = example[name];
      if (typeof text !== 'string') continue;
      made[name] = feature.hp.tokenizer.encode(text);
      if (this.hp.copyPretokenized) made[`${name}Pretokenized`] = text;
    }
    return made;
  }
}

/** The id that ends a feature's texts. @throws ConfigError where its tokenizer has none */
function eosIdOf({ hp: { tokenizer } }: Feature, name: string): number {
  if (tokenizer.eosId !== null) return tokenizer.eosId;
  throw new ConfigError(
    `Feature '${name}': ${tokenizer.constructor.name} has no id for the end of a text. Give the feature a tokenizer ` +
      'that has one, or set addEos: false.',
  );
}

/** At most `length` ids: a text that ended with `eosId` still does. */
export function trimmedTokens(tokens: Int32Array, length: number, eosId: number | null): Int32Array {
  if (tokens.length <= length) return tokens;
  const trimmed = tokens.slice(0, length);
  if (length > 0 && eosId !== null && tokens.at(-1) === eosId) trimmed[length - 1] = eosId;
  return trimmed;
}

/** Ends the features that have `addEos` with the id of the end. */
export class AppendEos extends MapPreprocessor.with({
  afterTrim: z
    .boolean()
    .default(false)
    .describe("Whether to trim to the feature's length less one first (seqio's append_eos_after_trim)."),
}) {
  protected override map(example: Example, { features, lengths }: PreprocessContext): Example {
    const made: Record<string, unknown> = { ...example };
    for (const [name, feature] of Object.entries(features)) {
      if (!feature.hp.addEos || !Object.hasOwn(example, name)) continue;
      const tokens = tokensOf(example, name);
      const longest = this.hp.afterTrim ? (lengths[name] ?? Number.POSITIVE_INFINITY) - 1 : tokens.length;
      const kept = tokens.subarray(0, longest);
      const ended = new Int32Array(kept.length + 1);
      ended.set(kept);
      ended[kept.length] = eosIdOf(feature, name);
      made[name] = ended;
    }
    return made;
  }
}

/** Cuts the features to `taskFeatureLengths`; an end stays. */
export class Trim extends MapPreprocessor.with({}) {
  protected override map(example: Example, { features, lengths }: PreprocessContext): Example {
    const made: Record<string, unknown> = { ...example };
    for (const [name, feature] of Object.entries(features)) {
      if (lengths[name] === undefined || !Object.hasOwn(example, name)) continue;
      made[name] = trimmedTokens(tokensOf(example, name), lengths[name], feature.hp.tokenizer.eosId);
    }
    return made;
  }
}

/** Keeps the examples for which a user's function returns true. */
export class Filter extends BasePreprocessor.with({
  keep: exampleFunction<boolean>('whether to keep it').describe('Whether to keep an example.'),
}) {
  override apply(examples: readonly Example[], context: PreprocessContext): Iterable<Example> {
    return examples.filter((example) => this.hp.keep(example, context));
  }
}

/** Keeps the examples whose feature has at least and at most so many ids. */
export class FilterByLength extends BasePreprocessor.with({
  feature: z.string().default('targets').describe('Name of the feature.'),
  min: z.int().min(0).default(1).describe('Fewest ids.'),
  max: z.int().positive().nullable().default(null).describe('Most ids; null: no limit.'),
}) {
  override apply(examples: readonly Example[]): Iterable<Example> {
    const { feature, min, max } = this.hp;
    return examples.filter((example) => {
      const { length } = tokensOf(example, feature);
      return length >= min && (max === null || length <= max);
    });
  }
}

/** Makes any number of examples of each, by a function of one's own. */
export class FlatMap extends BasePreprocessor.with({
  make: exampleFunction<Iterable<Example>>('examples').describe('The examples made of one.'),
}) {
  override *apply(examples: readonly Example[], context: PreprocessContext): Iterable<Example> {
    for (const example of examples) {
      const made = this.hp.make(example, context);
      if (typeof made?.[Symbol.iterator] !== 'function')
        throw new InputError(`FlatMap.make: expected a list of examples, got ${typeof made}`);
      yield* made;
    }
  }
}
