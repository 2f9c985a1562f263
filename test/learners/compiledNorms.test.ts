/** @file Sums of squares of many gradients by machine code: what the host finds, and NaN where there is one. */
import { expect, test } from 'vitest';
import { prngKey, uniform } from '../../src/compiler/index.js';
import { compileEntrySums } from '../../src/learners/compiledNorms.js';
import { entrySumsOfSquares } from '../../src/learners/norms.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';

const entry = (name: string, offset: number, size: number) => ({
  name,
  shape: [size],
  offset,
  size,
  group: 'matrix',
});
/** Whole rows of the sums, parts of one, and single elements, with gaps between. */
const entries = [
  entry('a', 0, 4 << 20),
  entry('b', (4 << 20) + 16, 1_000_003),
  entry('c', 5_300_000, 7),
  entry('d', 5_300_016, 1024),
];
const buffer = uniform(prngKey(3), 5_400_000).map((u) => u - 0.5);

test.skipIf(!hasCompiler)('the native sums are the host’s, to a few units in the last place', async () => {
  const sums = await compileEntrySums(entries, buffer, { engine: 'native' });
  const expected = entrySumsOfSquares(entries, buffer);
  const found = await sums();
  expect(found).toHaveLength(4);
  expect(Math.max(...found.map((sum, i) => Math.abs(sum / expected[i]! - 1)))).toBeLessThan(2e-6);
  const before = buffer[5_300_003]!;
  buffer[5_300_003] = Number.NaN;
  expect([...(await sums())].map(Number.isNaN)).toEqual([false, false, true, false]);
  buffer[5_300_003] = before;
});

test('few elements are summed on the host, in double precision', async () => {
  const few = Float32Array.of(1e30, 1, 2);
  const sums = await compileEntrySums([entry('a', 0, 1), entry('b', 1, 2)], few, {});
  const large = Math.fround(1e30) ** 2;
  expect([...(await sums())]).toEqual([large, 5]);
});
