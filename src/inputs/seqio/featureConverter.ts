/** @file Feature converters: from a task's features to the arrays that a model reads (seqio.FeatureConverter). */
import { z } from 'zod';
import { Configurable } from '../../hparams/index.js';
import type { Batch, BatchSpecs } from '../batch.js';
import { InputError } from '../inputErrors.js';
import type { RowTraits } from '../inputSource.js';
import type { Feature } from './feature.js';
import { bestFit, nextFit, type Sized } from './packing.js';
import { type Example, tokensOf } from './preprocessor.js';
import { trimmedTokens } from './textPreprocessors.js';

/** Features of a task and their lengths in a batch. */
export interface FeatureLengths {
  readonly features: Readonly<Record<string, Feature>>;
  readonly lengths: Readonly<Record<string, number>>;
}

/** A feature that examples are read for. */
export interface ReadFeature {
  readonly name: string;
  /** Most ids; the others are trimmed, but for the end. */
  readonly length: number;
  readonly eosId: number | null;
  readonly required: boolean;
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

  /** The kind of a row's labels; undefined where a row is more than one sequence. */
  readonly labels: RowTraits['labels'];

  /** Specs of a batch. */
  abstract batchSpecs(batchSize: number, lengths: FeatureLengths['lengths']): BatchSpecs;

  /** Whether only labels of the feature `targets` have a weight. */
  weighsTargetsAlone(_lengths: FeatureLengths['lengths']): boolean {
    return true;
  }

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

  /** The features that the task and `taskFeatureLengths` have. @throws InputError where one lacks a required one */
  readFeatures({ features, lengths }: FeatureLengths): readonly ReadFeature[] {
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
    return Object.keys(this.taskFeatures).flatMap((name) => {
      const [length, feature] = [lengths[name], features[name]?.hp];
      const { required = false, tokenizer } = feature ?? {};
      return length === undefined ? [] : [{ name, length, eosId: tokenizer?.eosId ?? null, required }];
    });
  }

  /**
   * The sequences of an example, at most as long as `taskFeatureLengths`: an end stays where they are cut.
   *
   * @param features those of `readFeatures`.
   * @param trims false: a longer sequence is an error.
   * @throws InputError for an example without a feature that is required, or longer than allowed.
   */
  segmentOf(example: Example, id: number, features: readonly ReadFeature[], trims: boolean): Segment {
    const sequences: Record<string, Int32Array> = {};
    for (const { name, length, eosId, required } of features) {
      const tokens = required || Object.hasOwn(example, name) ? tokensOf(example, name) : new Int32Array(0);
      if (!trims && tokens.length > length)
        throw new InputError(
          `feature '${name}' has ${tokens.length} tokens, and taskFeatureLengths allows ${length}. ` +
            'Split or trim it, or set trimOutputFeatures.',
        );
      sequences[name] = trimmedTokens(tokens, length, eosId);
    }
    return { tokens: sequences, id, sizes: this.sizesOf(sequences) };
  }

  /** The rows of a group of examples. */
  rowsOf(segments: readonly Segment[], lengths: FeatureLengths['lengths']): Segment[][] {
    if (!this.hp.pack) return segments.map((segment) => [segment]);
    return (this.hp.packing === 'best fit' ? bestFit : nextFit)(segments, this.capacity(lengths));
  }

  /** How many rows of a capacity examples of these sizes fill, at least. */
  numRows(count: number, sizes: readonly number[], capacity: readonly number[]): number {
    if (!this.hp.pack) return count;
    let most = 0;
    for (let i = 0; i < sizes.length; i++) most = Math.max(most, sizes[i]! / capacity[i]!);
    return most;
  }
}
