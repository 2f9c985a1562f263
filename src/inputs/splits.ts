/** @file Splits: the share of numbered items that is held out for validation. */
import { z } from 'zod';
import { InputError } from './inputErrors.js';
import { drawBelow, permutation, streamKey } from './random.js';

/** Purpose of the random stream of the split under its seed. */
const SPLIT = 2 ** 43;

/** Fields of inputs whose items are split at random. */
export const splitFields = {
  split: z.enum(['train', 'validation', 'all']).default('train').describe('The split to read.'),
  validationFraction: z.number().min(0).lt(1).default(0.1).describe('Share of the items to hold out.'),
  splitSeed: z.int().min(0).default(0).describe('Seed of the choice of the items to hold out.'),
};

interface SplitFields {
  readonly split: 'train' | 'validation' | 'all';
  readonly validationFraction: number;
  readonly splitSeed: number;
}

/**
 * The items of the split, in their order. The same number of items and seed give the same split.
 *
 * @param noun the items in messages: 'records'.
 * @throws InputError for a split without any.
 */
export function splitOf<T>(items: readonly T[], fields: SplitFields, noun: string): readonly T[] {
  const { split, validationFraction, splitSeed } = fields;
  if (items.length === 0) throw new InputError(`there are no ${noun}.`);
  if (split === 'all') return items;
  const order = permutation(streamKey(splitSeed, SPLIT), items.length);
  const held = new Set(order.subarray(0, Math.round(validationFraction * items.length)));
  const wanted = items.filter((_, i) => held.has(i) === (split === 'validation'));
  if (wanted.length > 0) return wanted;
  throw new InputError(
    `split '${split}' is empty: validationFraction ${validationFraction} of ${items.length} ${noun}.`,
  );
}

/** Whether item `i` of a stream, whose length nobody knows, is in the split; a share of about the fraction is held out. */
export function streamSplit({ split, validationFraction, splitSeed }: SplitFields): (i: number) => boolean {
  const key = streamKey(splitSeed, SPLIT);
  const limit = validationFraction * 2 ** 32;
  return (i) => split === 'all' || drawBelow(key, i, 2 ** 32) < limit === (split === 'validation');
}
