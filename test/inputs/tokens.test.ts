import fc from 'fast-check';
import { expect, test } from 'vitest';
import { prngKey } from '../../src/compiler/prng.js';
import { drawBelow, permutation, streamKey } from '../../src/inputs/random.js';
import { concatenate, heldOutFiles, splitStream } from '../../src/inputs/tokens.js';

test('the split by text cuts where nanoGPT cuts tinyshakespeare', () => {
  const stream = concatenate([new Uint8Array(1_115_394)]);
  expect(splitStream(stream, 0.1, 'train').tokens.length).toBe(1_003_854);
  expect(splitStream(stream, 0.1, 'validation').tokens.length).toBe(111_540);
});

test('train and validation are the corpus, without a gap or an overlap, document borders included', () => {
  const docs = fc.array(fc.uint8Array({ maxLength: 30 }), { minLength: 1, maxLength: 10 });
  fc.assert(
    fc.property(docs, fc.double({ min: 0, max: 0.99, noNaN: true }), (documents, fraction) => {
      const stream = concatenate(documents);
      const train = splitStream(stream, fraction, 'train');
      const validation = splitStream(stream, fraction, 'validation');
      expect([...train.tokens, ...validation.tokens]).toEqual([...stream.tokens]);
      const cut = train.tokens.length;
      const borders = new Set([...train.starts, ...validation.starts.map((start) => start + cut)]);
      for (const start of stream.starts) expect(borders.has(start)).toBe(true);
      expect(splitStream(stream, fraction, 'all')).toBe(stream);
    }),
  );
});

test('held-out files are spread evenly over the order', () => {
  const picked = (count: number, fraction: number) =>
    heldOutFiles(count, fraction).flatMap((held, index) => (held ? [index] : []));
  expect(picked(20, 0.1)).toEqual([9, 19]);
  expect(picked(7, 0.5)).toEqual([1, 3, 5]);
  expect(picked(3, 0.1)).toEqual([]);
  expect(picked(10, 0.3)).toEqual([3, 6, 9]);
  expect(picked(100, 0).length).toBe(0);
});

test('a permutation has every number once, and its key decides it', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.integer({ min: 0, max: 200 }), (seed, size) => {
      const order = permutation(prngKey(seed), size);
      expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: size }, (_, index) => index));
      expect(permutation(prngKey(seed), size)).toEqual(order);
    }),
  );
  expect(permutation(streamKey(1, 0), 50)).not.toEqual(permutation(streamKey(1, 1), 50));
});

test('the first place of a permutation is uniform over its numbers', () => {
  const counts = new Array<number>(8).fill(0);
  for (let seed = 0; seed < 8000; seed++) counts[permutation(prngKey(seed), 8)[0]!]!++;
  // Chi-square with 7 degrees of freedom: above 30 once in ten thousand seeds sets, and the seeds are fixed.
  const chiSquare = counts.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0);
  expect(chiSquare).toBeLessThan(30);
});

test('draws stay below their bound, also at large counters', () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.integer({ min: 1, max: 2 ** 31 }), (counter, bound) => {
      const draw = drawBelow(streamKey(3, 7), counter, bound);
      expect(Number.isInteger(draw) && draw >= 0 && draw < bound).toBe(true);
    }),
  );
  expect(drawBelow(streamKey(3, 7), 2 ** 32, 2 ** 31)).not.toBe(drawBelow(streamKey(3, 7), 0, 2 ** 31));
});
