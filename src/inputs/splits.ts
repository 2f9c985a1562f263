/** @file Splits: the share of numbered items that is held out for validation. */
import { z } from 'zod';
import { InputError } from './inputErrors.js';
import { drawBelow, streamKey } from './random.js';

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

/** The items of a split by number, in their order. */
export interface Split {
  readonly numItems: number;
  /** The number of the j-th item among all. */
  item(j: number): number;
}

/**
 * The items of the split, without a list of them: the data is cut into as many runs as there are items to hold out, whose
 * lengths differ by one at most, and one item of each is drawn. The same number of items and seed give the same split.
 *
 * @param noun the items in messages: 'records'.
 * @throws InputError for a split without any.
 */
export function splitOf(count: number, fields: SplitFields, noun: string): Split {
  const { split, validationFraction, splitSeed } = fields;
  if (count === 0) throw new InputError(`there are no ${noun}.`);
  const numHeld = split === 'all' ? 0 : Math.round(validationFraction * count);
  const numItems = split === 'validation' ? numHeld : count - numHeld;
  if (numItems === 0)
    throw new InputError(
      `split '${split}' is empty: validationFraction ${validationFraction} of ${count} ${noun}.`,
    );
  if (numHeld === 0) return { numItems, item: (j) => j };

  const key = streamKey(splitSeed, 'split');
  const shortRun = Math.floor(count / numHeld);
  const numLong = count - shortRun * numHeld;
  const startOf = (run: number): number => run * shortRun + Math.min(run, numLong);
  const heldIn = (run: number): number =>
    startOf(run) + drawBelow(key, run, run < numLong ? shortRun + 1 : shortRun);
  if (split === 'validation') return { numItems, item: heldIn };
  // A long run leaves `shortRun` items to train on, the others one fewer.
  const inLong = numLong * shortRun;
  const runOf = (j: number): number =>
    j < inLong ? Math.floor(j / shortRun) : numLong + Math.floor((j - inLong) / (shortRun - 1));
  return {
    numItems,
    item: (j) => {
      const run = runOf(j);
      return j + run < heldIn(run) ? j + run : j + run + 1;
    },
  };
}

/** Whether item `i` of a stream of unknown length is in the split; a share of about the fraction is held out. */
export function streamSplit({ split, validationFraction, splitSeed }: SplitFields): (i: number) => boolean {
  const key = streamKey(splitSeed, 'split');
  const limit = validationFraction * 2 ** 32;
  return (i) => split === 'all' || drawBelow(key, i, 2 ** 32) < limit === (split === 'validation');
}
