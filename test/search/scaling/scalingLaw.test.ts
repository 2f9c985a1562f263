/** @file The fit of Chinchilla's law: to losses that follow it, with noise, and with one that is off. */
import { expect, test } from 'vitest';
import { fitScalingLaw, lossOf, optimalPowers } from '../../../src/search/scaling/index.js';

/** Numbers of Hoffmann et al., 2022. */
const law = { E: 1.69, A: 406.4, B: 410.7, alpha: 0.34, beta: 0.28 };

const trainings = (noise = (_: number) => 0) =>
  [1e6, 4e6, 1.6e7, 6.4e7].flatMap((parameters, i) =>
    [1e7, 1e8, 1e9].map((tokens, j) => ({
      ...{ parameters, tokens, flops: 6 * parameters * tokens },
      loss: lossOf(law, { parameters, tokens }) * (1 + noise(3 * i + j)),
    })),
  );

test('losses that follow a law give it back', () => {
  const found = fitScalingLaw(trainings());
  for (const [name, value] of Object.entries(law))
    expect(Math.abs(found[name as keyof typeof law] / value - 1), name).toBeLessThan(0.02);
  expect(optimalPowers(law).parameters).toBeCloseTo(0.4516, 4);
  expect(optimalPowers(law).tokens).toBeCloseTo(0.5484, 4);
});

test('one training that is off by 20 % moves the prediction of the next size by less than 0.5 %', () => {
  const next = { parameters: 2.56e8, tokens: 4e9 };
  for (const off of [0, 5, 10]) {
    const found = fitScalingLaw(trainings((i) => (i === off ? 0.2 : 0.001 * Math.sin(7 * i))));
    expect(Math.abs(lossOf(found, next) / lossOf(law, next) - 1)).toBeLessThan(0.005);
  }
});

test('the fit does not depend on the order or the units of what it is given', () => {
  const given = trainings((i) => 0.003 * Math.sin(5 * i));
  const next = { parameters: 2e8, tokens: 2e9 };
  const scaled = given.map((each) => ({
    ...each,
    parameters: each.parameters * 1e3,
    tokens: each.tokens / 1e3,
  }));
  const found = lossOf(fitScalingLaw(given), next);
  expect(lossOf(fitScalingLaw(given.toReversed()), next) / found).toBeCloseTo(1, 5);
  expect(lossOf(fitScalingLaw(scaled), { parameters: 2e11, tokens: 2e6 }) / found).toBeCloseTo(1, 5);
});
