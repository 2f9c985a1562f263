/** @file Layer norm and RMS norm against their formulas. */
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { IdentityNorm, LayerNorm, listVariables, RmsNorm, WeightCollection } from '../../src/layers/index.js';
import { checkGradients, expectClose, initialTheta, randomTheta, run, tensor } from './helpers.js';

const DIM = 5;

/** Applies `f` to each row of x. */
function rows(x: ArrayLike<number>, f: (row: number[]) => number[]): number[] {
  const all = Array.from(x);
  const result: number[] = [];
  for (let i = 0; i < all.length; i += DIM) result.push(...f(all.slice(i, i + DIM)));
  return result;
}
const mean = (values: number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

test.each([
  [true, true],
  [true, false],
  [false, true],
  [false, false],
])('LayerNorm with directScale %s and useBias %s', (directScale, useBias) => {
  const epsilon = 1e-5;
  const layer = build(LayerNorm.config({ dim: DIM, epsilon, directScale, useBias }));
  const theta = randomTheta(layer);
  const x = tensor([2, 3, DIM]);
  const scale = theta.scale!.dataSync();
  const bias = useBias ? theta.bias!.dataSync() : new Float32Array(DIM);
  const expected = rows(x.dataSync(), (row) => {
    const m = mean(row);
    const variance = mean(row.map((value) => (value - m) ** 2));
    return row.map(
      (value, i) =>
        ((value - m) / Math.sqrt(variance + epsilon)) * (scale[i]! + (directScale ? 0 : 1)) + bias[i]!,
    );
  });
  expectClose(
    run(theta, () => layer.fprop(x)),
    expected,
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!));
});

test.each([true, false])('RmsNorm with directScale %s', (directScale) => {
  const layer = build(RmsNorm.config({ dim: DIM, epsilon: 1e-3, directScale }));
  const theta = randomTheta(layer);
  const x = tensor([4, DIM]);
  const scale = theta.scale!.dataSync();
  const expected = rows(x.dataSync(), (row) => {
    const rms = Math.sqrt(mean(row.map((value) => value ** 2)) + 1e-3);
    return row.map((value, i) => (value / rms) * (scale[i]! + (directScale ? 0 : 1)));
  });
  expectClose(
    run(theta, () => layer.fprop(x)),
    expected,
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!));
});

test('norms begin as plain normalisation whatever directScale is, and skip weight decay', () => {
  const x = tensor([2, DIM]);
  const outputs = [true, false].map((directScale) => {
    const layer = build(LayerNorm.config({ dim: DIM, directScale }));
    for (const { collections } of listVariables(layer)) {
      expect(collections).toEqual([WeightCollection.SKIP_LP_REGULARIZATION]);
    }
    return [...run(initialTheta(layer), () => layer.fprop(x)).dataSync()];
  });
  expect(outputs[0]).toEqual(outputs[1]);
});

test('LayerNorm without scale and bias has no variables; IdentityNorm returns its input', () => {
  expect(listVariables(build(LayerNorm.config({ dim: DIM, useScale: false, useBias: false })))).toEqual([]);
  const x = tensor([2, DIM]);
  expect(build(IdentityNorm.config({ dim: DIM })).fprop(x)).toBe(x);
});
