/** @file Epsilons and divergences of the sampled Gaussian mechanism: those of opacus (scripts/record_epsilons.py). */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { epsilonOf, logErfc, renyiDivergence } from '../../../src/learners/privacy/renyiAccountant.js';

type Row = readonly [number, number, number, number, number];
const { epsilons, divergences } = JSON.parse(
  readFileSync(new URL('../../fixtures/learners/epsilons.json', import.meta.url), 'utf8'),
) as { epsilons: Row[]; divergences: Row[] };

test("epsilons and divergences are opacus's", () => {
  expect(epsilons.length).toBeGreaterThan(50);
  for (const [q, sigma, steps, delta, expected] of epsilons.filter((_, i) => i % 4 === 1))
    expect(Math.abs(epsilonOf(q, sigma, steps, delta) / expected - 1), `${q} ${sigma} ${steps}`).toBeLessThan(
      1e-9,
    );
  for (const [q, sigma, order, expected] of divergences)
    expect(Math.abs(renyiDivergence(q, sigma, order) - expected)).toBeLessThan(1e-8 * expected + 1e-12);
});

test('no examples cost nothing, no noise everything, and more of either is monotonous', () => {
  expect(epsilonOf(0, 1, 1000, 1e-5)).toBe(0);
  expect(epsilonOf(0.01, 0, 1, 1e-5)).toBe(Number.POSITIVE_INFINITY);
  for (const q of [0.01, 0.6, 0.95, 1]) {
    const bySigma = [0.5, 1, 5, 20].map((sigma) => epsilonOf(q, sigma, 10, 1e-6));
    const bySteps = [1, 10, 1000].map((steps) => epsilonOf(q, 2, steps, 1e-6));
    expect([...bySigma].sort((a, b) => b - a)).toEqual(bySigma);
    expect([...bySteps].sort((a, b) => a - b)).toEqual(bySteps);
  }
  // erfc(2.5 ∓) by both expansions, and one far out: 2.0885e-45 at 10.
  expect(logErfc(2.4999999999) - logErfc(2.5)).toBeCloseTo(0, 8);
  expect(logErfc(10)).toBeCloseTo(Math.log(2.088487583762545e-45), 12);
  expect(logErfc(-1)).toBeCloseTo(Math.log(1.842700792949715), 14);
});
