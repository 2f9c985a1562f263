/** @file Packing of items into rows. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bestFit, nextFit } from '../../../src/inputs/seqio/packing.js';

const items = (...sizes: number[]) => sizes.map((size) => ({ sizes: [size] }));
const sizesOf = (rows: { sizes: readonly number[] }[][]) =>
  rows.map((row) => row.map(({ sizes: [size] }) => size));

test('next fit closes a row at the first item that does not fit', () => {
  expect(sizesOf(nextFit(items(3, 4, 2, 6, 0, 2), [8]))).toEqual([[3, 4], [2, 6], [2]]);
});

test('best fit puts large items first, and each where it leaves least room', () => {
  expect(sizesOf(bestFit(items(3, 4, 2, 6, 0, 1), [8]))).toEqual([
    [6, 2],
    [4, 3, 1],
  ]);
});

test('each item is in one row, and no row is over-full in any of its sequences', () => {
  const item = fc.record({ sizes: fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 1, max: 7 })) });
  fc.assert(
    fc.property(fc.array(item), fc.constantFrom(bestFit, nextFit), (given, pack) => {
      const rows = pack(given, [9, 7]);
      expect(new Set(rows.flat())).toEqual(new Set(given));
      expect(rows.flat()).toHaveLength(given.length);
      for (const row of rows)
        for (const i of [0, 1])
          expect(row.reduce((sum, { sizes }) => sum + sizes[i]!, 0)).toBeLessThanOrEqual([9, 7][i]!);
    }),
  );
});
