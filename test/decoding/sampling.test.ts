/** @file Drawing a token from logits: ties, top-k, nucleus, temperature, frequencies. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { argmax, logProbability, sampleId, topK } from '../../src/decoding/sampling.js';

const row = (...values: number[]) => Float32Array.from(values);
const logs = (...probabilities: number[]) => Float32Array.from(probabilities, Math.log);

/** Every token that some draw gives. */
function support(logits: Float32Array, rule: Parameters<typeof sampleId>[1]): number[] {
  const draws = 1000;
  const ids = Array.from({ length: draws }, (_, i) => sampleId(logits, rule, i / draws));
  return [...new Set(ids)].sort((a, b) => a - b);
}

test('argmax takes the first of equals', () => {
  expect(argmax(row(1, 3, 2, 3))).toBe(1);
});

test('logProbability is log softmax, also far from zero', () => {
  expect(logProbability(logs(0.2, 0.5, 0.3), 1)).toBeCloseTo(Math.log(0.5), 6);
  expect(logProbability(row(1000, 1000), 0)).toBeCloseTo(Math.log(0.5), 6);
});

test('topK agrees with sorting, lower indices first among equals', () => {
  const value = fc.integer({ min: -3, max: 3 });
  fc.assert(
    fc.property(
      fc.array(value, { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 35 }),
      (values, k) => {
        const sorted = [...values.keys()].sort((a, b) => values[b]! - values[a]! || a - b);
        expect([...topK(row(...values), k)]).toEqual(sorted.slice(0, k));
      },
    ),
  );
});

test('temperature 0 and k 1 are greedy for every draw', () => {
  const logits = row(0.1, 0.4, 0.3);
  expect(support(logits, { temperature: 0, k: 0, p: null })).toEqual([1]);
  expect(support(logits, { temperature: 5, k: 1, p: null })).toEqual([1]);
});

test('top-k 2 with top-p 0.5 draws from the top two of each row at most', () => {
  const rule = { temperature: 1, k: 2, p: 0.5 };
  expect(support(row(0.1, 0.7, 0.2, 0, 0), rule)).toEqual([1]);
  expect(support(row(0.3, 0.1, 0, 0.2, 0.5), rule)).toEqual([4]);
  expect(support(row(0.2, 0.6, 0.1, 0, 0.1), rule)).toEqual([1]);
  // The two are as likely as each other, so both belong to the nucleus.
  expect(support(row(0.5, 0, 0.5, 0, 0), rule)).toEqual([0, 2]);
});

test('the nucleus is the fewest tokens that reach p', () => {
  const logits = logs(0.15, 0.5, 0.05, 0.3);
  expect(support(logits, { temperature: 1, k: 0, p: 0.4 })).toEqual([1]);
  expect(support(logits, { temperature: 1, k: 0, p: 0.7 })).toEqual([1, 3]);
  expect(support(logits, { temperature: 1, k: 0, p: 0.9 })).toEqual([0, 1, 3]);
  expect(support(logits, { temperature: 1, k: 0, p: 1 })).toEqual([0, 1, 2, 3]);
});

test('the nucleus is drawn from the likeliest on, lower indices first among equals', () => {
  const logit = fc.constantFrom(-30, -2.5, -1, -1e-30, -0, 0, 1e-30, 1, 2.5, Number.NEGATIVE_INFINITY);
  fc.assert(
    fc.property(
      fc.array(logit, { minLength: 1, maxLength: 40 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (values, u) => {
        const logits = row(...values, 0);
        const sorted = Array.from(logits.keys()).sort((x, y) => logits[y]! - logits[x]! || x - y);
        const mass = sorted.map((id) => Math.exp(logits[id]!));
        const total = mass.reduce((sum, one) => sum + one, 0);
        const within = (id: number): boolean => {
          const place = sorted.indexOf(id);
          const before = mass.slice(0, place).reduce((sum, one) => sum + one, 0) / total;
          return before <= u + 1e-4 && u - 1e-4 <= before + mass[place]! / total;
        };
        expect(within(sampleId(logits, { temperature: 1, k: 0, p: 0.99999 }, u))).toBe(true);
      },
    ),
    { seed: 3, numRuns: 300 },
  );
});

test.each([
  [1, [0.1, 0.6, 0.3]],
  [0.5, [0.01, 0.36, 0.09].map((p) => p / 0.46)],
])('evenly spread draws at temperature %d follow softmax(logits / temperature)', (temperature, expected) => {
  const counts = [0, 0, 0];
  const draws = 10_000;
  for (let i = 0; i < draws; i++) {
    counts[sampleId(logs(0.1, 0.6, 0.3), { temperature, k: 0, p: null }, i / draws)]!++;
  }
  for (const [id, count] of counts.entries()) expect(count / draws).toBeCloseTo(expected[id]!, 3);
});

test('a token of probability zero is never drawn', () => {
  const logits = row(Number.NEGATIVE_INFINITY, 0, Number.NEGATIVE_INFINITY);
  expect(support(logits, { temperature: 1, k: 0, p: null })).toEqual([1]);
  expect(sampleId(logits, { temperature: 1, k: 3, p: null }, 1 - 2 ** -53)).toBe(1);
});
