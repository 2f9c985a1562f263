/** @file Norms of weights against their formulas, and the state of the spectral norm. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import {
  FeedForward,
  listVariables,
  SpectralNorm,
  WeightCollection,
  WeightNormL2,
  WeightNormLinear,
} from '../../src/layers/index.js';
import { checkGradients, expectClose, initialTheta, randomTheta, run, tensor } from './helpers.js';

test('WeightNormL2: the weights of an output have the norm 1 + g', () => {
  const layer = build(WeightNormL2.config({ dim: 3 }));
  expect([...initialTheta(layer).g!.dataSync()]).toEqual([0, 0, 0]);
  const theta = randomTheta(layer);
  const [w, g] = [tensor([2, 4, 3]), theta.g!.dataSync()];
  const values = w.dataSync();
  const norm = (k: number) => Math.hypot(...Array.from({ length: 8 }, (_, i) => values[3 * i + k]!));
  expectClose(
    run(theta, () => layer.fprop(w)),
    [...values].map((x, i) => ((1 + g[i % 3]!) * x) / norm(i % 3)),
  );
  checkGradients(layer, [w], (x) => layer.fprop(x!));
});

/** The largest singular value of a matrix [rows, 2]. */
function largestSingularValue(w: ArrayLike<number>): number {
  let [a, b, d] = [0, 0, 0];
  for (let i = 0; i < w.length; i += 2) {
    a += w[i]! ** 2;
    b += w[i]! * w[i + 1]!;
    d += w[i + 1]! ** 2;
  }
  return Math.sqrt((a + d + Math.hypot(a - d, 2 * b)) / 2);
}

test('SpectralNorm finds the largest singular value over steps of training', () => {
  const layer = build(SpectralNorm.config({ dim: 2, nPowerIteration: 2 }));
  expect(listVariables(layer)[0]).toMatchObject({ path: 'u', collections: [WeightCollection.NON_TRAINABLE] });
  const w = tensor([2, 3, 2]);
  let theta = initialTheta(layer);
  const normed = (options = {}) => run(theta, () => layer.fprop(w), options);
  for (let step = 0; step < 20; step++) {
    const updatedVars: Record<string, Tensor> = {};
    normed({ updatedVars });
    theta = { ...theta, ...updatedVars };
  }
  const largest = largestSingularValue(w.dataSync());
  expectClose(
    normed({ doEval: true }),
    [...w.dataSync()].map((x) => x / largest),
  );
});

test('SpectralNorm: evaluation leaves u as it is, and gradients take it as a constant', () => {
  const layer = build(SpectralNorm.config({ dim: 2 }));
  const theta = initialTheta(layer);
  const w = tensor([3, 2]);
  const updatedVars: Record<string, Tensor> = {};
  run(theta, () => layer.fprop(w), { doEval: true, updatedVars });
  expect(updatedVars).toEqual({});
  // w / (v w u) with v and u fixed: the gradient of its sum by w is 1 / σ - sum(w) v u / σ².
  const grad = tf
    .grad((x) => tf.sum(run(theta, () => layer.fprop(x))))(w)
    .dataSync();
  const [x, u] = [w.dataSync(), theta.u!.dataSync()];
  const unit = (values: number[]) => values.map((value) => value / Math.hypot(...values));
  const v = unit([0, 1, 2].map((i) => x[2 * i]! * u[0]! + x[2 * i + 1]! * u[1]!));
  const right = unit([0, 1].map((k) => v.reduce((sum, value, i) => sum + value * x[2 * i + k]!, 0)));
  const sigma = v.reduce(
    (sum, value, i) => sum + value * (x[2 * i]! * right[0]! + x[2 * i + 1]! * right[1]!),
    0,
  );
  const total = [...x].reduce((a, b) => a + b, 0);
  expectClose(
    tf.tensor1d(grad),
    Array.from(x, (_, i) => 1 / sigma - (total * v[Math.floor(i / 2)]! * right[i % 2]!) / sigma ** 2),
  );
});

test('a feed-forward layer with normalised weights', () => {
  const layer = build(
    FeedForward.config({ inputDims: 4, outputDims: 3, linearTpl: WeightNormLinear.config() as never }),
  );
  expect(listVariables(layer).map(({ path }) => path)).toEqual([
    'linear/w',
    'linear/weight_norm/g',
    'bias/b',
  ]);
  const theta = randomTheta(layer);
  const columns = run(theta, () => tf.norm(layer.weights, 'euclidean', 0));
  expectClose(
    columns,
    [...theta['linear/weight_norm/g']!.dataSync()].map((g) => 1 + g),
  );
});
