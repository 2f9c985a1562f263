/** @file Residuals that are dropped whole. */
import { expect, test } from 'vitest';
import { tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { StochasticResidual } from '../../src/layers/index.js';
import { expectClose, run, tensor } from './helpers.js';

const ROWS = 400;
const inputs = tensor([ROWS, 2, 3]);
const residual = tf.add(tensor([ROWS, 2, 3], 2), 2) as tf.Tensor;
const prngKey = tf.tensor1d([5, 6], 'int32');

test('each example keeps its residual or loses it whole, and the mean stays', () => {
  const layer = build(StochasticResidual.config({ survivalProb: 0.7, residualWeight: 0.5 }));
  const outputs = run({}, () => layer.fprop(inputs, residual), { prngKey });
  const ratio = tf.div(tf.sub(outputs, inputs), residual).dataSync();
  const rows = Array.from({ length: ROWS }, (_, i) => [...ratio.slice(6 * i, 6 * i + 6)]);
  const kept = rows.filter(([first]) => first! > 0);
  for (const row of rows) for (const value of row) expect(value).toBeCloseTo(row[0]! > 0 ? 0.5 / 0.7 : 0, 4);
  expect(kept.length / ROWS).toBeGreaterThan(0.62);
  expect(kept.length / ROWS).toBeLessThan(0.78);
});

test('a dropped residual has no effect, whatever it is', () => {
  const layer = build(StochasticResidual.config({ survivalProb: 0.5 }));
  const loss = (x: tf.Tensor): tf.Scalar =>
    run({}, () => tf.sum(tf.square(layer.fprop(inputs, x))), { prngKey }) as tf.Scalar;
  const dropped = tf.equal(tf.grad(loss)(residual), 0);
  const poisoned = tf.where(dropped, tf.fill(residual.shape, Number.NaN), residual) as tf.Tensor;
  expect(loss(poisoned).dataSync()[0]).toBe(loss(residual).dataSync()[0]);
  expect(tf.any(tf.isNaN(tf.grad(loss)(poisoned))).dataSync()[0]).toBe(0);
});

test('evaluation keeps all residuals, and draws no key', () => {
  const layer = build(StochasticResidual.config({ survivalProb: 0.5 }));
  const outputs = run({}, () => layer.fprop(inputs, residual), { doEval: true });
  expectClose(outputs, tf.add(inputs, residual).dataSync());
});
