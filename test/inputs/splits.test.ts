/** @file Held-out items: disjoint, complete, in order, one of each run, and none of them listed. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { splitOf } from '../../src/inputs/splits.js';

const itemsOf = (
  split: 'train' | 'validation' | 'all',
  count: number,
  validationFraction: number,
  splitSeed = 0,
) => {
  const { numItems, item } = splitOf(count, { split, validationFraction, splitSeed }, 'items');
  return Array.from({ length: numItems }, (_, j) => item(j));
};

test('the splits share no item, make all of the data, keep its order, and follow the seed', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 300 }),
      fc.double({ min: 0, max: 0.99, noNaN: true }),
      fc.nat(5),
      (count, fraction, seed) => {
        const held = Math.round(fraction * count);
        fc.pre(held > 0 && held < count);
        const [train, validation] = [
          itemsOf('train', count, fraction, seed),
          itemsOf('validation', count, fraction, seed),
        ];
        expect(validation).toHaveLength(held);
        for (const items of [train, validation]) expect(items).toEqual(items.toSorted((a, b) => a - b));
        expect([...train, ...validation].sort((a, b) => a - b)).toEqual(itemsOf('all', count, fraction));
        // Runs differ by one item at most, the long ones first.
        for (const [i, item] of validation.slice(1).entries())
          expect(item - validation[i]!).toBeLessThan(2 * Math.ceil(count / held));
      },
    ),
  );
  expect(itemsOf('validation', 1000, 0.1, 1)).not.toEqual(itemsOf('validation', 1000, 0.1, 2));
});

test('every item is held out equally often over the seeds', () => {
  const counts = new Array<number>(12).fill(0);
  for (let seed = 0; seed < 4000; seed++)
    for (const item of itemsOf('validation', 12, 0.25, seed)) counts[item]!++;
  // Chi-square with 9 degrees of freedom, 3 runs of 4 items.
  expect(counts.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0)).toBeLessThan(33);
});

test('a billion records are split as fast as ten', () => {
  const fields = { validationFraction: 0.1, splitSeed: 3 };
  const train = splitOf(1e9, { split: 'train', ...fields }, 'records');
  const validation = splitOf(1e9, { split: 'validation', ...fields }, 'records');
  expect([train.numItems, validation.numItems]).toEqual([9e8, 1e8]);
  expect(train.item(9e8 - 1)).toBeGreaterThan(1e9 - 3);
  expect(validation.item(1e8 - 1)).toBeGreaterThanOrEqual(1e9 - 10);
  // Nine of ten items before the half are in the first half of training.
  expect(Math.abs(train.item(4.5e8) - 5e8)).toBeLessThan(2);
});

test('splits without an item are errors', () => {
  expect(() => itemsOf('train', 0, 0.1)).toThrow('there are no items.');
  expect(() => itemsOf('validation', 4, 0.1)).toThrow(
    "split 'validation' is empty: validationFraction 0.1 of 4 items.",
  );
});
