/** @file Sums of squares over flat buffers. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sumOfSquares } from '../../../src/learners/transforms/norms.js';

test('the sum of squares of any part of a buffer', () => {
  const values = fc.array(fc.integer({ min: -100, max: 100 }), { maxLength: 60 });
  fc.assert(
    fc.property(values, fc.nat(10), fc.nat(60), (numbers, from, length) => {
      const buffer = Float32Array.from(numbers);
      const offset = Math.min(from, buffer.length);
      const size = Math.min(length, buffer.length - offset);
      const expected = numbers.slice(offset, offset + size).reduce((sum, x) => sum + x * x, 0);
      expect(sumOfSquares(buffer, offset, size)).toBe(expected);
    }),
  );
});

test('double precision: large gradients do not overflow, small ones beside them count', () => {
  expect(sumOfSquares(Float32Array.of(1e30, 1e30), 0, 2)).toBe(2 * Math.fround(1e30) ** 2);
  const many = new Float32Array(2 ** 20).fill(1e-4);
  many[0] = 100;
  const rest = (2 ** 20 - 1) * Math.fround(1e-4) ** 2;
  expect(sumOfSquares(many, 0, many.length) - 1e4).toBeCloseTo(rest, 6);
});

test('one element that is not finite shows in the sum, wherever it stands', () => {
  for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
    for (let at = 0; at < 19; at++) {
      const buffer = new Float32Array(19);
      buffer[at] = bad;
      expect(Number.isFinite(sumOfSquares(buffer, 0, 19))).toBe(false);
    }
  }
});
