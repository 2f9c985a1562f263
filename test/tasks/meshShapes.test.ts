/** @file Shapes of meshes. */
import { expect, test } from 'vitest';
import { divisors, meshShapes } from '../../src/tasks/meshShapes.js';

test('divisors', () => {
  expect(divisors(1)).toEqual([1]);
  expect(divisors(7)).toEqual([1, 7]);
  expect(divisors(36)).toEqual([1, 2, 3, 4, 6, 9, 12, 18, 36]);
});

test('each shape once', () => {
  expect(meshShapes(5, 1)).toEqual([[5]]);
  expect(meshShapes(4, 2)).toEqual([
    [1, 4],
    [2, 2],
    [4, 1],
  ]);
  const shapes = meshShapes(4096, 3);
  expect(shapes).toHaveLength(91);
  expect(new Set(shapes.map(String)).size).toBe(91);
  expect(shapes.every(([a, b, c]) => a! * b! * c! === 4096)).toBe(true);
});
