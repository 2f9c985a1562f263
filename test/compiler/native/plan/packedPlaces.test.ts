/** @file Packed operands that are read at different times lie in one place, which is packed anew behind a barrier. */
import { expect, test } from 'vitest';
import { bytesOfPlaces, packedPlaces } from '../../../../src/compiler/native/plan/packedPlaces.js';
import { samePacking } from '../../../../src/compiler/native/plan/stages.js';
import { unitsOfStep } from '../../../../src/compiler/native/plan/threadSteps.js';
import { f32, planOf, tf } from '../plans.js';

/** Products in a row, each of all values that the one before gives, so that they are chains of their own. */
const stacked = (x: any, ...weights: any[]) =>
  weights.reduce((h: any, w: any) => tf.matMul(tf.sub(h, tf.mean(h, 0)), w), x);

const [WIDTH, LAYERS] = [3072, 9];
const weights = Array.from({ length: LAYERS }, () => f32(WIDTH, WIDTH));

test('operands of large programs are packed before the chains that read them, in places that take turns', () => {
  const { plan, schedule, packedPlaces: places } = planOf(stacked, f32(64, WIDTH), ...weights);
  expect(places).toHaveLength(LAYERS);
  const used = new Set(places).size;
  expect(used).toBeLessThan(LAYERS);
  const bytes = places.map(() => 1);
  expect(bytesOfPlaces(places, bytes)).toBe(used);
  const spans = schedule.packings.map(({ unit }) => {
    const epochs = plan.steps
      .filter((step) =>
        step.kind === 'pack'
          ? step.packings.some((packing) => samePacking(packing.unit, unit))
          : unitsOfStep(step).some((other) => other.kind === 'product' && samePacking(other, unit)),
      )
      .map(({ epoch }) => epoch);
    return { from: Math.min(...epochs), to: Math.max(...epochs) };
  });
  for (const [i, x] of spans.entries())
    for (const [j, y] of spans.entries())
      if (i !== j && places[i] === places[j])
        expect(x.to < y.from || y.to < x.from, `${i} and ${j}`).toBe(true);
});

test('small programs pack all before the first chain, and what persists has a place of its own', () => {
  const small = planOf(stacked, f32(64, 64), f32(64, 64), f32(64, 64));
  expect(small.plan.steps.filter(({ kind }) => kind === 'pack')).toHaveLength(1);
  expect(packedPlaces(small.schedule.packings, { ...small.plan, onceSteps: 1 })).toEqual([0, 1]);
});
