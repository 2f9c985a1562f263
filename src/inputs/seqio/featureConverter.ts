/** @file Feature converters: from a task's features to the arrays that a model reads (seqio.FeatureConverter). */
import { z } from 'zod';
import { Configurable } from '../../hparams/index.js';
import type { Batch, BatchSpecs } from '../batch.js';
import { InputError } from '../inputErrors.js';
import type { Feature } from './feature.js';
import { bestFit, nextFit, type Sized } from './packing.js';
import { type Example, tokensOf } from './preprocessor.js';
import { trimmedTokens } from './textPreprocessors.js';

/** Features of a task and their lengths in a batch. */
export interface FeatureLengths {
  readonly features: Readonly<Record<string, Feature>>;
  readonly lengths: Readonly<Record<string, number>>;
}

/** Sequences of one example, trimmed: token ids by the feature's name. */
export interface Segment extends Sized {
  readonly tokens: Readonly<Record<string, Int32Array>>;
  /** Number of the example within an evaluation's data. */
  readonly id: number;
}

/** Base of the feature converters. */
export abstract class BaseFeatureConverter extends Configurable.with({
  pack: z
    .boolean()
    .default(false)
    .describe('Whether a row holds several examples, told apart by segment ids.'),
  packing: z
    .enum(['best fit', 'next fit'])
    .default('best fit')
    .describe(
      'How examples are packed: into the row that they fill best, or, as SeqIO does, into the open one.',
    ),
}) {
  static override readonly isAbstract = true;

  /** The features that it reads, and whether a task must have them. */
  protected abstract readonly taskFeatures: Readonly<Record<string, 'required' | 'optional'>>;

  /** Specs of a batch. */
  abstract batchSpecs(batchSize: number, lengths: FeatureLengths['lengths']): BatchSpecs;

  /** Positions of a row, of each of its sequences. */
  abstract capacity(lengths: FeatureLengths['lengths']): readonly number[];

  /** Positions that an example takes. */
  protected abstract sizesOf(tokens: Segment['tokens']): readonly number[];

  /** Writes segments, which fit, to row `b` of a batch of padding. */
  abstract fill(
    batch: Batch,
    b: number,
    segments: readonly Segment[],
    lengths: FeatureLengths['lengths'],
  ): void;

  /** Names of the features that the task and `taskFeatureLengths` have. @throws InputError where one lacks a required one */
  featureNames({ features, lengths }: FeatureLengths): readonly string[] {
    const own = this.constructor.name;
    for (const [name, need] of Object.entries(this.taskFeatures)) {
      if (need === 'optional') continue;
      if (lengths[name] === undefined)
        throw new InputError(`taskFeatureLengths has no '${name}', which ${own} needs.`);
      if (features[name] === undefined) {
        const names = Object.keys(features).join(', ');
        throw new InputError(`the task has no feature '${name}', which ${own} needs. It has: ${names}.`);
      }
    }
    return Object.keys(this.taskFeatures).filter((name) => lengths[name] !== undefined);
  }

  /**
   * The sequences of an example, at most as long as `taskFeatureLengths`: an end stays where they are cut.
   *
   * @param trims false: a longer sequence is an error.
   * @throws InputError for an example without a feature that is required, or longer than allowed.
   */
  segmentOf(example: Example, id: number, given: FeatureLengths, trims: boolean): Segment {
    const pairs = this.featureNames(given).map((name) => {
      const feature = given.features[name];
      if (!Object.hasOwn(example, name) && !(feature?.hp.required ?? false)) return [name, new Int32Array(0)];
      const tokens = tokensOf(example, name);
      const length = given.lengths[name]!;
      if (!trims && tokens.length > length)
        throw new InputError(
          `feature '${name}' has ${tokens.length} tokens, and taskFeatureLengths allows ${length}. ` +
            'Split or trim it, or set trimOutputFeatures.',
        );
      return [name, trimmedTokens(tokens, length, feature?.hp.tokenizer.eosId ?? null)];
    });
    const tokens = Object.fromEntries(pairs) as Segment['tokens'];
    return { tokens, id, sizes: this.sizesOf(tokens) };
  }

  /** The rows of a group of examples. */
  rowsOf(segments: readonly Segment[], lengths: FeatureLengths['lengths']): Segment[][] {
    if (!this.hp.pack) return segments.map((segment) => [segment]);
    return (this.hp.packing === 'best fit' ? bestFit : nextFit)(segments, this.capacity(lengths));
  }

  /** How many rows examples of these sizes fill, at least. */
  numRows(count: number, sizes: readonly number[], lengths: FeatureLengths['lengths']): number {
    if (!this.hp.pack) return count;
    return Math.max(...this.capacity(lengths).map((capacity, i) => sizes[i]! / capacity));
  }
}
