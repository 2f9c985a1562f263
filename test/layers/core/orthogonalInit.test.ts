/** @file Orthogonal filters. */
import { expect, test } from 'vitest';
import { prngKey } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import { ScaledDeltaOrthogonal } from '../../../src/layers/index.js';

const drawn = (shape: readonly number[], scale = 1): Float32Array =>
  build(ScaledDeltaOrthogonal.config({ scale })).draw(prngKey(3), { shape }) as Float32Array;

test.each([
  [[4, 3, 6, 5], 1 * 3 + 1, Math.sqrt(6 / 5)],
  [[3, 4, 7], 1, 1],
  [[1, 1, 1, 5, 5], 0, 1],
])('a filter %j is 0 but in its middle, where its shorter side is orthogonal', (shape, middle, scale) => {
  const [rows, columns] = shape.slice(-2) as [number, number];
  const filter = drawn(shape, 0.5);
  const cells = Array.from({ length: filter.length / (rows * columns) }, (_, i) =>
    filter.slice(i * rows * columns, (i + 1) * rows * columns),
  );
  expect(cells.map((cell) => cell.some((x) => x !== 0))).toEqual(cells.map((_, i) => i === middle));
  const matrix = cells[middle]!;
  const vector = (i: number): number[] =>
    rows < columns
      ? [...matrix.slice(i * columns, (i + 1) * columns)]
      : Array.from({ length: rows }, (_, row) => matrix[row * columns + i]!);
  const count = Math.min(rows, columns);
  for (let i = 0; i < count; i++)
    for (let k = 0; k <= i; k++) {
      const product = vector(i).reduce((sum, x, j) => sum + x * vector(k)[j]!, 0);
      expect(product, `${i} by ${k}`).toBeCloseTo(i === k ? (0.5 * scale) ** 2 : 0, 6);
    }
});

test('weights that are no filter are refused', () => {
  expect(() => drawn([3, 4])).toThrow(
    'ScaledDeltaOrthogonal: expected a filter of rank 3, 4 or 5, got [3, 4].',
  );
});
