/** @file SOAP's slots, stacks and first steps; its rule is among the published ones. */
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import { Soap } from '../../../src/learners/index.js';
import { bench, learnerOf, noise } from '../fixtures.js';

const learningRate = 0.1;

test('each variable of a stack has its own bases, which begin where its first step is taken', async () => {
  const [first, second] = [noise(1, 9), noise(2, 9)];
  const config = learnerOf(Soap.config({ learningRate, preconditionFrequency: 2 }));
  const bad = Array(9).fill(Number.NaN);
  const stacked = await bench({ s: [...first, ...second] }, config, {
    shapes: { s: [2, 3, 3] },
    repeatPrefix: { s: [2] },
  });
  const one = await bench({ w: second, vector: noise(3, 2) }, config, { shapes: { w: [3, 3] } });
  const moved: boolean[] = [];
  for (let t = 0; t < 4; t++) {
    const before = `${one.read('w')}`;
    await stacked.step(t, { s: t === 0 ? [...bad, ...bad] : [...noise(t + 7, 9), ...noise(t, 9)] });
    await one.step(t, t === 0 ? { w: bad, vector: [0, 0] } : { w: noise(t, 9), vector: [1, -1] });
    moved.push(`${one.read('w')}` !== before);
  }
  expect(moved).toEqual([false, false, true, true]);
  for (const [i, value] of one.read('w').entries()) expect(stacked.read('s')[9 + i]).toBeCloseTo(value, 5);
});

test('slots are two matrices for each dimension that is not too large; vectors have none', () => {
  const slots = (shape: number[], values = {}) =>
    Object.fromEntries(
      Object.entries(build(Soap.config({ learningRate, ...values })).slotSpecs({ path: 'w', shape })).map(
        ([name, spec]) => [name, spec.shape],
      ),
    );
  expect(slots([6, 4, 2], { maxPreconditionDim: 5 })).toEqual({
    ...{
      m: [6, 4, 2],
      v: [6, 4, 2],
      statistics1: [4, 4],
      basis1: [4, 4],
      statistics2: [2, 2],
      basis2: [2, 2],
    },
  });
  expect(slots([2, 3, 4], { maxPreconditionDim: 6, mergeDims: true })).toEqual({
    ...{
      m: [2, 3, 4],
      v: [2, 3, 4],
      statistics0: [6, 6],
      basis0: [6, 6],
      statistics1: [4, 4],
      basis1: [4, 4],
    },
  });
  expect(slots([5])).toEqual({ m: [5], v: [5] });
  expect(slots([5], { precondition1d: true })).toMatchObject({ statistics0: [5, 5], basis0: [5, 5] });
});
