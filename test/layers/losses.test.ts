/** @file The bi-tempered loss against its definition, with the normaliser by bisection. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { BiTemperedLoss } from '../../src/layers/index.js';
import { checkGradients, expectClose, run } from './helpers.js';

const logits = [0.3, -1.2, 2.5, 0.1, -4, 6, 0, 1];
const labels = [0, 0, 1, 0, 0.25, 0.5, 0, 0.25];
const rows = (values: number[]): Tensor => tf.tensor2d(values, [2, 4]);

const logT = (x: number, t: number): number => (t === 1 ? Math.log(x) : (x ** (1 - t) - 1) / (1 - t));
const expT = (x: number, t: number): number =>
  t === 1 ? Math.exp(x) : Math.max(0, 1 + (1 - t) * x) ** (1 / (1 - t));

/** Tempered probabilities of a row. */
function probabilities(row: number[], t: number): number[] {
  let [low, high] = [Math.max(...row), Math.max(...row) + 1e6];
  for (let i = 0; i < 200; i++) {
    const middle = (low + high) / 2;
    const total = row.reduce((sum, logit) => sum + expT(logit - middle, t), 0);
    if (total > 1) low = middle;
    else high = middle;
  }
  return row.map((logit) => expT(logit - high, t));
}

const lossOf = (row: number[], target: number[], t1: number, t2: number): number =>
  probabilities(row, t2).reduce((sum, p, i) => {
    const y = target[i]!;
    const divergence = y === 0 ? 0 : y * (logT(y, t1) - logT(p, t1));
    return sum + divergence - (y ** (2 - t1) - p ** (2 - t1)) / (2 - t1);
  }, 0);

const expected = (t1: number, t2: number): number[] =>
  [0, 4].map((i) => lossOf(logits.slice(i, i + 4), labels.slice(i, i + 4), t1, t2));

test.each([
  [1, 1],
  [0.6, 1],
  [1, 1.5],
  [0.2, 1.3],
  [0, 2],
])('temperatures %s and %s', (t1, t2) => {
  const layer = build(BiTemperedLoss.config({ t1, t2 }));
  const values = run({}, () => layer.fprop(rows(logits), rows(labels)), { doEval: true });
  // Five iterations find the normaliser to four digits.
  expectClose(values, expected(t1, t2), t2 === 1 ? 1e-5 : 2e-3);
  checkGradients(layer, [rows(logits)], (x) => layer.fprop(x!, rows(labels)), { theta: {}, doEval: true });
});

test('temperatures move from (1, 1) between two steps of training', () => {
  const layer = build(BiTemperedLoss.config({ t1: 0.5, t2: 2, startStep: 2, endStep: 6 }));
  const at = (count: number, doEval = false): number[] => {
    const { t1, t2 } = run({ count: tf.scalar(count) }, () => layer.temperatures(), { doEval });
    return [t1, t2].map((t) => t.dataSync()[0]!);
  };
  expect([0, 2, 4, 6, 9].map((count) => at(count))).toEqual([
    [1, 1],
    [1, 1],
    [0.75, 1.5],
    [0.5, 2],
    [0.5, 2],
  ]);
  expect(at(0, true)).toEqual([0.5, 2]);
  const updatedVars: Record<string, Tensor> = {};
  run({ count: tf.scalar(3) }, () => layer.fprop(rows(logits), rows(labels)), { updatedVars });
  expect(updatedVars.count!.dataSync()[0]).toBe(4);
  expect(() => build(BiTemperedLoss.config({ startStep: 5, endStep: 2 }))).toThrow(
    'endStep (BiTemperedLoss): expected startStep (5) or later',
  );
});
