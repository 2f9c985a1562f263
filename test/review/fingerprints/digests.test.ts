/** @file Digests of plain data with arrays: to the bit, and by the type of the elements. */
import { expect, it } from 'vitest';
import { digest } from '../../../src/review/fingerprints/digests.js';
import { expectKey } from '../../keys.js';

it('values, types and bytes of arrays count, and where an array stands', () => {
  const base = { value: 1, type: Float32Array, bytes: [1, 2, 3, 4] };
  expectKey(
    'digests of values',
    base,
    { value: 2, type: Int32Array, bytes: [1, 2, 3, 5] },
    ({ value, type, bytes }) => digest({ value, array: new type(Uint8Array.from(bytes).buffer) }),
  );
  const [one, two] = [Float32Array.of(1), Float32Array.of(2)];
  const different = [
    [one, two],
    [two, one],
    [[one, two]],
    [Float32Array.of(1, 2)],
    [one, 2],
    [-0, 1],
    [0, 1],
  ] as const;
  // JSON writes a negative zero as zero.
  expect(new Set(different.map((parts) => digest(...parts))).size).toBe(different.length - 1);
  expect(digest(Float32Array.of(-0))).not.toBe(digest(Float32Array.of(0)));
  expect(digest(Float32Array.of(9, 1).subarray(1))).toBe(digest(one));
});
