/** @file Metrics of classifiers and regressions against plain loops: weights, ties, padding alone, gradients. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { classificationMetrics, regressionMetrics, type WeightedScalars } from '../../src/models/index.js';
import { expectClose, ints } from '../layers/helpers.js';

const values = (metrics: WeightedScalars): Record<string, number> =>
  Object.fromEntries(
    Object.entries(metrics).map(([name, [value]]) => [name, (value as Tensor).dataSync()[0]!]),
  );

const CLASSES = 4;
const row = fc.record({
  // Few different values, so that logits tie.
  logits: fc.array(fc.integer({ min: -3, max: 3 }), { minLength: CLASSES, maxLength: CLASSES }),
  label: fc.nat(CLASSES - 1),
  weight: fc.constantFrom(0, 0.5, 1, 3),
});

test('of any logits: cross entropy, accuracy and top-k accuracy by weight, 0 for padding alone', () => {
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 8 }), (rows) => {
      const weights = rows.map(({ weight }) => weight);
      const total = weights.reduce<number>((a, b) => a + b, 0);
      const mean = (of: (each: (typeof rows)[number]) => number) =>
        total === 0 ? 0 : rows.reduce<number>((sum, each) => sum + each.weight * of(each), 0) / total;
      const metrics = classificationMetrics(
        tf.tensor2d(
          rows.flatMap(({ logits }) => logits),
          [rows.length, CLASSES],
        ),
        ints(
          rows.map(({ label }) => label),
          [rows.length],
        ),
        tf.tensor1d(weights),
        { topK: [2, CLASSES] },
      );
      for (const [, weight] of Object.values(metrics)) expectClose(weight, [total]);
      const found = values(metrics);
      const xent = ({ logits, label }: (typeof rows)[number]) =>
        Math.log(logits.reduce((sum, x) => sum + Math.exp(x), 0)) - logits[label]!;
      const rank = ({ logits, label }: (typeof rows)[number]) =>
        logits.filter((x) => x > logits[label]!).length;
      expect(found.total_loss).toBeCloseTo(mean(xent), 4);
      expect(found.accuracy).toBeCloseTo(
        mean(({ logits, label }) => Number(logits.indexOf(Math.max(...logits)) === label)),
        5,
      );
      expect(found.top_2_accuracy).toBeCloseTo(
        mean((each) => Number(rank(each) < 2)),
        5,
      );
      expect(found.top_4_accuracy).toBeCloseTo(
        mean(() => 1),
        5,
      );
    }),
    { numRuns: 50 },
  );
});

test('of a regression: squares and absolute values, outputs alike, padding left out', () => {
  const weights = tf.tensor1d([1, 2, 0]);
  const targets = tf.tensor1d([1, 1, 1]);
  expect(values(regressionMetrics(tf.tensor1d([3, 0, 1e6]), targets, weights))).toEqual({
    total_loss: 2,
    mean_absolute_error: expect.closeTo(4 / 3, 5),
  });
  const pairs = regressionMetrics(
    tf.tensor2d([3, 1, 0, 0, 9, 9], [3, 2]),
    tf.tensor2d([1, 1, 1, 3, 0, 0], [3, 2]),
    weights,
  );
  expect(values(pairs)).toEqual({ total_loss: 4, mean_absolute_error: expect.closeTo(5 / 3, 5) });
  expect(values(regressionMetrics(targets, targets, tf.zeros([3])))).toEqual({
    total_loss: 0,
    mean_absolute_error: 0,
  });
});

test('the losses have gradients', () => {
  const labels = ints([2, 0], [2]);
  const weights = tf.tensor1d([1, 1]);
  const logits = tf.tensor2d([1, 2, 3, 0, 0, 0], [2, 3]);
  const [grad] = tf.grads((x: Tensor) => classificationMetrics(x, labels, weights).total_loss![0])([
    logits,
  ]) as Tensor[];
  const softmax = tf.softmax(logits);
  expectClose(grad!, [...tf.div(tf.sub(softmax, tf.oneHot(labels, 3)), 2).dataSync()], 1e-5);
});

test('labels as shares of classes: cross entropy of the mixture, accuracies of the largest share', () => {
  const logits = tf.tensor2d([1, 2, 0.5, 0, 3, -1], [2, 3]);
  const shares = tf.tensor2d([0.25, 0.75, 0, 0, 0.4, 0.6], [2, 3]);
  const found = values(classificationMetrics(logits, shares, tf.tensor1d([1, 3]), { topK: [2] }));
  const xent = (row: readonly number[], of: readonly number[]) =>
    Math.log(row.reduce((sum, x) => sum + Math.exp(x), 0)) - row.reduce((sum, x, i) => sum + x * of[i]!, 0);
  const losses = [xent([1, 2, 0.5], [0.25, 0.75, 0]), xent([0, 3, -1], [0, 0.4, 0.6])] as const;
  expect(found.total_loss).toBeCloseTo((losses[0] + 3 * losses[1]) / 4, 5);
  expect(found).toMatchObject({ accuracy: 0.25, top_2_accuracy: 0.25 });
  const ids = classificationMetrics(logits, ints([1, 2], [2]), tf.tensor1d([1, 3]), { topK: [2] });
  const oneHot = classificationMetrics(
    logits,
    tf.oneHot(tf.tensor1d([1, 2], 'int32'), 3),
    tf.tensor1d([1, 3]),
    {
      topK: [2],
    },
  );
  for (const [name, value] of Object.entries(values(ids))) expect(values(oneHot)[name]).toBeCloseTo(value, 5);
});
