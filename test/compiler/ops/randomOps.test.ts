/** @file Random numbers inside programs: the same bits on every engine, even and independent; dropout. */
import { expect, test } from 'vitest';
import { randomUniformHost } from '../../../src/compiler/ops/randomOps.js';
import { foldInHost, mix32 } from '../../../src/compiler/random/randomWords.js';
import { compiledResults, host, ops, tf } from '../support.js';

const KEYS = [
  [0, 0],
  [1, 2],
  [-1, 2 ** 31 - 1],
  [-(2 ** 31), 123456789],
];

const keyOf = (words: readonly number[]) => host([2], words, 'int32');

test.each(KEYS)('key [%i, %i]: host, compiled and eager give the same bits', async (...key) => {
  const f = (k: any) => [
    ops.randomUniform(k, [5, 7]),
    ops.foldIn(k, 3),
    ops.randomUniform(ops.foldIn(k, 3), [4]),
  ];
  const folded = foldInHost(key, 3);
  const expected = [randomUniformHost(key, 35), Int32Array.from(folded), randomUniformHost(folded, 4)];
  for (const engine of ['onnx', 'eager'] as const) {
    const results = await compiledResults(f, keyOf(key), { engine });
    expect(results.map((result) => result.data)).toEqual(expected);
  }
});

test('mix32 permutes words: no two of 100,000 collide', () => {
  const seen = new Set<number>();
  for (let i = 0; i < 100_000; i++) seen.add(mix32(i * 2654435761));
  expect(seen.size).toBe(100_000);
});

/** Chi-square of `values` in [0, 1) over `bins` equal bins. */
function chiSquare(values: Iterable<number>, count: number, bins: number): number {
  const counts = new Array<number>(bins).fill(0);
  for (const value of values) counts[Math.floor(value * bins)]!++;
  return counts.reduce((sum, n) => sum + (n - count / bins) ** 2 / (count / bins), 0);
}

/** 99 degrees of freedom stay below this with probability 0.9999. */
const LIMIT_99 = 161;

test.each(KEYS)('key [%i, %i]: uniform, and neighbours are independent', (...key) => {
  const values = randomUniformHost(key, 200_000);
  expect(chiSquare(values, values.length, 100)).toBeLessThan(LIMIT_99);
  // Pairs of neighbours on a grid of 10 by 10.
  const pairs = Array.from({ length: 100_000 }, (_, i) => {
    const [a, b] = [values[2 * i]!, values[2 * i + 1]!];
    return (Math.floor(a * 10) + b) / 10;
  });
  expect(chiSquare(pairs, pairs.length, 100)).toBeLessThan(LIMIT_99);
});

/** Pearson's correlation. */
function correlation(a: Float32Array, b: Float32Array): number {
  const mean = (x: Float32Array) => x.reduce((sum, v) => sum + v, 0) / x.length;
  const [ma, mb] = [mean(a), mean(b)];
  let [ab, aa, bb] = [0, 0, 0];
  a.forEach((v, i) => {
    ab += (v - ma) * (b[i]! - mb);
    aa += (v - ma) ** 2;
    bb += (b[i]! - mb) ** 2;
  });
  return ab / Math.sqrt(aa * bb);
}

test('folded keys are distinct, and their streams uncorrelated with each other and with the first', () => {
  const count = 20_000;
  const base = [7, 11];
  const folded = Array.from({ length: 64 }, (_, i) => foldInHost(base, i - 8));
  expect(new Set([...folded, base].map(String)).size).toBe(65);
  const streams = [base, ...folded.slice(0, 12)].map((key) => randomUniformHost(key, count));
  for (const [i, a] of streams.entries()) {
    for (const b of streams.slice(i + 1)) {
      // Standard deviation 1 / sqrt(count) = 0.007.
      expect(Math.abs(correlation(a, b))).toBeLessThan(0.03);
    }
  }
});

test('the first number of consecutive keys is uniform', () => {
  const firsts = Array.from({ length: 20_000 }, (_, i) => randomUniformHost(foldInHost([3, 5], i), 1)[0]!);
  expect(chiSquare(firsts, firsts.length, 100)).toBeLessThan(LIMIT_99);
});

test.each([0.9, 0.5, 0.1])('dropout keeps %f of the elements and scales them', async (keepProb) => {
  const x = host([100, 200], new Float32Array(20_000).fill(3));
  const [dropped] = await compiledResults(({ x, key }) => ops.dropout(x, key, keepProb), {
    x,
    key: keyOf([5, 6]),
  });
  const kept = dropped!.data.filter((value: number) => value !== 0);
  for (const value of kept) expect(value).toBeCloseTo(3 / keepProb, 4);
  const deviation = Math.sqrt((keepProb * (1 - keepProb)) / 20_000);
  expect(Math.abs(kept.length / 20_000 - keepProb)).toBeLessThan(4 * deviation);
});

test('dropout drops others under another key, and the same under the same key', async () => {
  const x = host([500], new Float32Array(500).fill(1));
  const f = ({ x, a, b }: any) => [ops.dropout(x, a, 0.5), ops.dropout(x, b, 0.5), ops.dropout(x, a, 0.5)];
  const [a, b, again] = await compiledResults(f, { x, a: keyOf([1, 1]), b: keyOf([1, 2]) });
  expect(again!.data).toEqual(a!.data);
  const differing = a!.data.filter((value, i) => value !== b!.data[i]).length;
  expect(differing).toBeGreaterThan(200);
  expect(differing).toBeLessThan(300);
});

test('keepProb 1 changes nothing, others outside (0, 1] are refused', () => {
  const x = tf.tensor1d([1]);
  const key = tf.tensor1d([1, 2], 'int32');
  expect(ops.dropout(x, key, 1)).toBe(x);
  for (const keepProb of [0, -0.5, 1.5, Number.NaN]) {
    expect(() => ops.dropout(x, key, keepProb)).toThrow(
      `dropout: expected keepProb in (0, 1], got ${keepProb}.`,
    );
  }
});
