/** @file Counter-based randomness: known answers and independence of order. */
import { expect, test } from 'vitest';
import {
  foldIn,
  hashString,
  prngKey,
  randomBits,
  threefry2x32,
  uniform,
} from '../../../src/compiler/random/prng.js';

// Random123's kat_vectors, threefry2x32 with 20 rounds: counter, key, result.
test.each([
  [
    [0, 0],
    [0, 0],
    [0x6b200159, 0x99ba4efe],
  ],
  [
    [0xffffffff, 0xffffffff],
    [0xffffffff, 0xffffffff],
    [0x1cb996fc, 0xbb002be7],
  ],
  [
    [0x243f6a88, 0x85a308d3],
    [0x13198a2e, 0x03707344],
    [0xc4923a9c, 0x483df7a0],
  ],
] as [[number, number], [number, number], [number, number]][])('threefry2x32 %o', (counter, key, answer) => {
  expect(threefry2x32(key, counter)).toEqual(answer);
});

test('hashString is FNV-1a', () => {
  expect(hashString('')).toBe(0x811c9dc5);
  expect(hashString('a')).toBe(0xe40c292c);
  expect(hashString('foobar')).toBe(0xbf9cf968);
});

test('bulk draws are the words of consecutive counters, for any count', () => {
  const key = foldIn(prngKey(7), hashString('lm/emb'));
  const bits = randomBits(key, 5);
  expect([...bits]).toEqual([
    ...threefry2x32(key, [0, 0]),
    ...threefry2x32(key, [0, 1]),
    threefry2x32(key, [0, 2])[0],
  ]);
  expect([...randomBits(key, 3)]).toEqual([...bits.subarray(0, 3)]);
});

test('uniform numbers fill [0, 1) evenly', () => {
  const values = uniform(prngKey(123), 100_000);
  const counts = new Array<number>(10).fill(0);
  for (const value of values) {
    counts[Math.floor(value * 10)]!++;
  }
  expect(counts.length).toBe(10);
  // 9 degrees of freedom: chi-square stays under 27.9 with probability 0.999; the key is fixed.
  const chiSquare = counts.reduce((sum, n) => sum + (n - 10_000) ** 2 / 10_000, 0);
  expect(chiSquare).toBeLessThan(27.9);
});

test('seeds and folded integers count beyond 32 bits', () => {
  expect(prngKey(2 ** 32 + 5)).toEqual([1, 5]);
  expect(foldIn(prngKey(0), 1)).not.toEqual(foldIn(prngKey(0), 2 ** 32 + 1));
  expect(foldIn(prngKey(0), 1)).not.toEqual(foldIn(prngKey(1), 1));
  expect(() => prngKey(-1)).toThrow('prngKey: expected an integer seed from 0 to 2^53 - 1, got -1.');
});
