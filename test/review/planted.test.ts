/** @file How many changes are planted to check reviews with, of each mechanism. */
import { expect, test } from 'vitest';
import { allPlants } from './planted.js';
import { plantedResumptions } from './plantedResumptions.js';

test('each mechanism of reviews has planted changes of its own, more than 60 in all', () => {
  const counts = { checkpoints: plantedResumptions.length } as Record<string, number>;
  for (const { mechanism } of allPlants) counts[mechanism] = (counts[mechanism] ?? 0) + 1;
  expect(counts).toEqual({
    broken: 8,
    checkpoints: 32,
    contents: 12,
    discovery: 11,
    numerics: 26,
    state: 4,
    varying: 10,
  });
  const names = [...allPlants.map(({ name }) => name), ...plantedResumptions.map(({ change }) => change)];
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThan(60);
});
