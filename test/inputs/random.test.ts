/** @file Draws and orders that a key and a number decide: bijective at every size, and random to the eye of statistics. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { prngKey } from '../../src/compiler/random/prng.js';
import { drawBelow, KeyedPermutation, streamKey } from '../../src/inputs/random.js';

const orderOf = (seed: number, size: number): number[] => {
  const order = new KeyedPermutation(prngKey(seed), size);
  return Array.from({ length: size }, (_, place) => order.at(place));
};

const chiSquareOf = (counts: readonly number[]): number => {
  const expected = counts.reduce((sum, count) => sum + count) / counts.length;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
};

test.each([
  0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 97, 255, 256, 257, 1023, 1024, 1025, 7919, 65535, 65536, 65537,
])('an order of %i has every number once, and its key decides it', (size) => {
  for (const seed of [0, 1, 2 ** 40]) {
    const order = orderOf(seed, size);
    const seen = new Uint8Array(size);
    for (const item of order) seen[item]!++;
    expect(seen.every((times) => times === 1)).toBe(true);
    expect(order).toEqual(orderOf(seed, size));
  }
  if (size > 20) expect(orderOf(0, size)).not.toEqual(orderOf(1, size));
});

test('an order of any size and key has every number once', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.integer({ min: 0, max: 3000 }), (seed, size) => {
      expect(new Set(orderOf(seed, size))).toEqual(new Set(Array.from({ length: size }, (_, i) => i)));
    }),
  );
});

test.each([10 ** 9, 10 ** 9 + 7, 2 ** 40 - 1, 2 ** 52])(
  'of %i numbers, no two places have the same',
  (size) => {
    const order = new KeyedPermutation(prngKey(5), size);
    const seen = new Set<number>();
    const halves = [0, 0];
    // Draws with replacement of 300,000 from 10^9 would meet 45 times.
    for (let i = 0; i < 300_000; i++) {
      const item = order.at(i < 150_000 ? i : size - 1 - i);
      if (!Number.isSafeInteger(item) || item < 0 || item >= size) throw new Error(`${item} at ${i}`);
      seen.add(item);
      halves[Math.floor((2 * item) / size)]!++;
    }
    expect(seen.size).toBe(300_000);
    expect(chiSquareOf(halves)).toBeLessThan(15);
  },
);

test('more than 2^52 numbers are refused', () => {
  expect(() => new KeyedPermutation(prngKey(0), 2 ** 52 + 1)).toThrow(
    'KeyedPermutation: expected at most 2^52 items, got 4503599627370497.',
  );
});

test('each place of an order is uniform over its numbers, and so is each pair of neighbours', () => {
  const size = 8;
  const places = Array.from({ length: size }, () => new Array<number>(size).fill(0));
  const pairs = new Array<number>(size * size).fill(0);
  for (let seed = 0; seed < 8000; seed++) {
    const order = orderOf(seed, size);
    for (const [place, item] of order.entries()) places[place]![item]!++;
    pairs[order[2]! * size + order[3]!]!++;
  }
  // 7 degrees of freedom: above 30 once in ten thousand sets of seeds, and the seeds are fixed.
  for (const counts of places) expect(chiSquareOf(counts)).toBeLessThan(30);
  // 55 degrees of freedom.
  expect(chiSquareOf(pairs.filter((_, i) => Math.floor(i / size) !== i % size))).toBeLessThan(110);
});

test('neighbours in an order are as far apart as in random ones: no runs, no lattice', () => {
  const size = 100_003;
  const order = orderOf(11, size);
  const distances = new Array<number>(20).fill(0);
  let rising = 0;
  for (let i = 1; i < size; i++) {
    distances[Math.floor((((order[i]! - order[i - 1]! + size) % size) / size) * 20)]!++;
    if (order[i]! > order[i - 1]!) rising++;
  }
  // 19 degrees of freedom.
  expect(chiSquareOf(distances)).toBeLessThan(50);
  // The variance of the number of rises of a random order is size / 12.
  expect(Math.abs(rising - size / 2)).toBeLessThan(4 * Math.sqrt(size / 12));
});

test('draws stay below their bound, also at large counters', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.integer({ min: 1, max: 2 ** 31 }), (counter, bound) => {
      const draw = drawBelow(streamKey(3, 'tokens'), counter, bound);
      expect(Number.isInteger(draw) && draw >= 0 && draw < bound).toBe(true);
    }),
  );
  expect(drawBelow(streamKey(3, 'tokens'), 2 ** 32, 2 ** 31)).not.toBe(
    drawBelow(streamKey(3, 'tokens'), 0, 2 ** 31),
  );
});
