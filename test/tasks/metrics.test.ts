/** @file Weighted means of metrics. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { WeightedMeans } from '../../src/tasks/metrics.js';

test('means are weighted, by name, in order of first appearance', () => {
  const means = new WeightedMeans();
  means.add({ loss: { value: 2, weight: 1 }, accuracy: { value: 0.5, weight: 3 } });
  means.add({ accuracy: { value: 1, weight: 1 }, loss: { value: 5, weight: 2 } });
  expect(means.result()).toEqual({ loss: { value: 4, weight: 3 }, accuracy: { value: 0.625, weight: 4 } });
  means.clear();
  expect(means.result()).toEqual({});
});

test('padding rows of weight 0 count for nothing, whatever their value', () => {
  const means = new WeightedMeans();
  means.add({ loss: { value: Number.NaN, weight: 0 } });
  expect(means.result()).toEqual({ loss: { value: 0, weight: 0 } });
  means.add({ loss: { value: 3, weight: 2 } });
  expect(means.result()).toEqual({ loss: { value: 3, weight: 2 } });
});

test('the mean over batches is the mean over all examples, however they are grouped', () => {
  const example = fc.record({
    value: fc.integer({ min: -100, max: 100 }),
    weight: fc.integer({ min: 1, max: 5 }),
  });
  fc.assert(
    fc.property(fc.array(example, { minLength: 1 }), fc.integer({ min: 1, max: 7 }), (examples, size) => {
      const [one, grouped] = [new WeightedMeans(), new WeightedMeans()];
      for (const e of examples) one.add({ x: e });
      for (let i = 0; i < examples.length; i += size) {
        const group = examples.slice(i, i + size);
        const weight = group.reduce((sum, e) => sum + e.weight, 0);
        grouped.add({ x: { value: group.reduce((sum, e) => sum + e.value * e.weight, 0) / weight, weight } });
      }
      expect(grouped.result().x!.value).toBeCloseTo(one.result().x!.value, 9);
      expect(grouped.result().x!.weight).toBe(one.result().x!.weight);
    }),
  );
});
