/** @file Shampoo's intervals, blocks and stacks; which variables it leaves to the graft. */
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import { RmsProp, Shampoo } from '../../../src/learners/index.js';
import { bench, learnerOf, noise } from '../fixtures.js';

const learningRate = 0.1;
const grads = (step: number, size = 24): number[] => noise(step + 1, size);

test('statistics and roots are those of their steps', async () => {
  const { step, read } = await bench(
    { w: noise(9, 24) },
    learnerOf(Shampoo.config({ learningRate, preconditioningComputeSteps: 3, statisticsComputeSteps: 2 })),
    { shapes: { w: [4, 6] } },
  );
  const seen: Record<string, string[]> = { leftStatistics: [], rightRoot: [] };
  for (let t = 0; t < 5; t++) {
    await step(t, { w: grads(t) });
    for (const [name, all] of Object.entries(seen)) all.push(`${read('w', name)}`);
  }
  const changes = (all: string[]) => all.map((each, i) => i === 0 || each !== all[i - 1]);
  expect(changes(seen.leftStatistics!)).toEqual([true, false, true, false, true]);
  expect(changes(seen.rightRoot!)).toEqual([true, false, false, true, false]);
});

test('each variable of a stack has its own; one of more dimensions is the matrix nearest to a square', async () => {
  const fields = { learningRate, startPreconditioningStep: 0, preconditioningComputeSteps: 1 };
  const [first, second] = [noise(1, 24), noise(2, 24)];
  const stacked = await bench({ s: [...first, ...second] }, learnerOf(Shampoo.config(fields)), {
    shapes: { s: [2, 4, 3, 2] },
    repeatPrefix: { s: [2] },
  });
  const one = await bench({ w: second }, learnerOf(Shampoo.config(fields)), { shapes: { w: [4, 6] } });
  for (let t = 0; t < 2; t++) {
    await stacked.step(t, { s: [...grads(t + 7), ...grads(t)] });
    await one.step(t, { w: grads(t) });
  }
  for (const [i, value] of one.read('w').entries()) expect(stacked.read('s')[24 + i]).toBeCloseTo(value, 5);
});

test('the graft steps alone for large variables, those of few dimensions, and before the first step', async () => {
  const shared = { learningRate, beta1: 0, skipPreconditioningDimSizeGt: 5, skipPreconditioningRankLt: 2 };
  const start = { wide: noise(1, 24), vector: noise(2, 5), early: noise(3, 16) };
  const shapes = { wide: [4, 6], early: [4, 4] };
  const values = { ...start };
  const found = await bench(
    values,
    learnerOf(Shampoo.config({ ...shared, graftType: 'rmsprop', beta2: 0.9 })),
    {
      shapes,
    },
  );
  const plain = await bench(values, learnerOf(RmsProp.config({ learningRate, epsilon: 1e-16 })), { shapes });
  for (let t = 0; t < 2; t++) {
    const given = { wide: grads(t), vector: grads(t + 3, 5), early: grads(t + 5, 16) };
    await found.step(t, given);
    await plain.step(t, given);
  }
  for (const name of Object.keys(start))
    for (const [i, value] of plain.read(name).entries()) expect(found.read(name)[i]).toBeCloseTo(value, 5);
});

test('slots are those of two sides, and of the momenta that count', () => {
  const slots = (shape: number[], values = {}) =>
    Object.fromEntries(
      Object.entries(build(Shampoo.config({ learningRate, ...values })).slotSpecs({ path: 'w', shape })).map(
        ([name, spec]) => [name, spec.shape],
      ),
    );
  expect(slots([6, 8, 2], { blockSize: 4, graftType: 'sgd' })).toEqual({
    ...{ momentum: [6, 8, 2], graftMomentum: [6, 8, 2] },
    ...{ leftStatistics: [8, 3, 3], leftRoot: [8, 3, 3], rightStatistics: [8, 4, 4], rightRoot: [8, 4, 4] },
  });
  expect(slots([5], { startPreconditioningStep: 0 })).toEqual({
    ...{ squares: [5], momentum: [5], leftStatistics: [1, 5, 5], leftRoot: [1, 5, 5] },
  });
  expect(slots([], { beta1: 0 })).toEqual({ squares: [] });
});
