/** @file Metrics of whole evaluations against scikit-learn's values and plain definitions, however rows fall into batches. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import type { Batch } from '../../src/inputs/index.js';
import { Auc, type BaseEvalMetric, Evaluation, F1, Perplexity, RSquared } from '../../src/tasks/index.js';

const ints = (values: readonly number[]) =>
  ({ shape: [values.length], dtype: 'int32', data: Int32Array.from(values) }) as const;
const floats = (values: readonly number[], columns?: number) =>
  ({
    shape: columns === undefined ? [values.length] : [values.length / columns, columns],
    dtype: 'float32',
    data: Float32Array.from(values),
  }) as const;

/** The metric of `logits`, batch by batch. */
function classified(
  metric: BaseEvalMetric,
  rows: readonly { logits: readonly number[]; label: number; weight: number }[],
  batchSize = rows.length,
): number {
  const evaluation = new Evaluation({ metric });
  for (let i = 0; i < rows.length; i += batchSize) {
    const part = rows.slice(i, i + batchSize);
    const batch: Batch = {
      labels: ints(part.map(({ label }) => label)),
      weights: floats(part.map(({ weight }) => weight)),
    };
    const logits = floats(
      part.flatMap(({ logits }) => logits),
      rows[0]!.logits.length,
    );
    evaluation.add({ metrics: {}, examples: { logits } }, batch);
  }
  return evaluation.result().metrics.metric!.value;
}

// Ties, a class that is never predicted right, weights: scikit-learn 1.7's f1_score, roc_auc_score, r2_score.
const labels = [0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2];
const logits = [
  ...[
    [-3, 0, 3],
    [2, 0, 1],
    [0, 3, 1],
    [-2, 3, -3],
    [3, -1, 2],
    [3, -3, 0],
  ],
  ...[
    [-1, 2, 0],
    [-1, 0, 3],
    [2, -2, 1],
    [2, 3, -1],
    [-2, 3, -3],
    [3, -1, 4],
  ],
];
const weights = [1, 2, 0.5, 1, 1, 3, 1, 0.5, 2, 1, 1, 1];
const rows = labels.map((label, i) => ({ label, logits: logits[i]!, weight: weights[i]! }));

test("F1 and AUC of three classes, and AUC of two, are scikit-learn's", () => {
  expect(classified(build(F1.config()), rows)).toBeCloseTo(0.3862433862433862, 12);
  expect(classified(build(F1.config({ average: 'micro' })), rows)).toBeCloseTo(0.4, 12);
  expect(classified(build(Auc.config()), rows)).toBeCloseTo(0.6893239540074018, 12);
  const two = rows.map(({ label, logits, weight }) => ({
    label: Number(label === 1),
    logits: logits.slice(0, 2),
    weight,
  }));
  expect(classified(build(Auc.config()), two)).toBeCloseTo(0.6666666666666666, 12);
});

test('no metric depends on the batches, padding among them, nor on the order of the rows', () => {
  const metrics = [F1.config(), F1.config({ average: 'micro' }), Auc.config()].map((config) => build(config));
  for (const metric of metrics) {
    const whole = classified(metric, rows);
    const padding = { label: 0, logits: [9, 9, 9], weight: 0 };
    for (const batchSize of [1, 5, 13]) {
      expect(classified(metric, [...rows.toReversed(), padding], batchSize)).toBeCloseTo(whole, 12);
    }
  }
});

test('AUC of any two classes: the share of pairs in the right order, ties half', () => {
  const row = fc.record({
    score: fc.integer({ min: -3, max: 3 }),
    label: fc.nat(1),
    weight: fc.constantFrom(0, 1, 2),
  });
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 20 }), (drawn) => {
      const [of, not] = [1, 0].map((id) => drawn.filter(({ label }) => label === id));
      let [won, all] = [0, 0];
      for (const a of of!) {
        for (const b of not!) {
          all += a.weight * b.weight;
          won += a.weight * b.weight * (a.score > b.score ? 1 : a.score === b.score ? 0.5 : 0);
        }
      }
      const rows = drawn.map(({ score, label, weight }) => ({ logits: [0, score], label, weight }));
      const found = classified(build(Auc.config()), rows, 3);
      if (all === 0) expect(found).toBeNaN();
      else expect(found).toBeCloseTo(won / all, 10);
    }),
  );
});

test("R² of two outputs is scikit-learn's; of one it is 1 for the targets, 0 for their mean", () => {
  const targets = Array.from({ length: 12 }, (_, i) => [i * 0.5 - 1, (i * i) % 5]);
  const predictions = targets.map(([a, b], i) => [
    a! + (((i * 3) % 4) - 1.5) * 0.3,
    b! + (((i * 5) % 3) - 1) * 0.7,
  ]);
  const r2 = (of: readonly number[][], to: readonly number[][], batchSize: number) => {
    const evaluation = new Evaluation({ r2: build(RSquared.config({ targets: 'place' })) });
    for (let i = 0; i < of.length; i += batchSize) {
      const part = (values: readonly number[][]) =>
        floats(values.slice(i, i + batchSize).flat(), values[0]!.length);
      evaluation.add(
        { metrics: {}, examples: { predictions: part(to) } },
        { place: part(of), weights: floats(weights.slice(i, i + batchSize)) },
      );
    }
    return evaluation.result().metrics.r2!;
  };
  for (const batchSize of [12, 5, 1]) {
    expect(r2(targets, predictions, batchSize).value).toBeCloseTo(0.9184996798620644, 6);
    expect(r2(targets, predictions, batchSize).weight).toBe(15);
  }
  expect(r2(targets, targets, 4).value).toBe(1);
  const total = weights.reduce((a, b) => a + b);
  const mean = targets.reduce((sum, [a], i) => sum + a! * weights[i]!, 0) / total;
  const one = targets.map(([a]) => [a!]);
  expect(
    r2(
      one,
      one.map(() => [mean]),
      4,
    ).value,
  ).toBeCloseTo(0, 6);
});

test('perplexity is of the mean of all batches; a metric that the model has not is told', () => {
  const evaluation = new Evaluation({ perplexity: build(Perplexity.config()) });
  for (const [value, weight] of [
    [1, 3],
    [5, 1],
  ] as const)
    evaluation.add({ metrics: { total_loss: { value, weight } }, examples: {} }, {});
  expect(evaluation.result().metrics).toEqual({
    total_loss: { value: 2, weight: 4 },
    perplexity: { value: expect.closeTo(Math.exp(2), 12), weight: 4 },
  });
  const other = new Evaluation({ perplexity: build(Perplexity.config({ of: 'total_los' })) });
  other.add({ metrics: { total_loss: { value: 1, weight: 1 } }, examples: {} }, {});
  expect(() => other.result().metrics).toThrow(
    "Perplexity.of: the model has no metric 'total_los'. Did you mean 'total_loss'? It has: total_loss.",
  );
});

test('labels that are shares of classes are refused', () => {
  for (const metric of [build(F1.config()), build(Auc.config())]) {
    const evaluation = new Evaluation({ metric });
    const batch: Batch = { labels: floats([1, 0, 0.5, 0.5], 2), weights: floats([1, 1]) };
    expect(() =>
      evaluation.add({ metrics: {}, examples: { logits: floats([1, 2, 3, 4], 2) } }, batch),
    ).toThrow(
      'expected labels that are ids of classes, of shape [2]; got [2, 2]. ' +
        "Where these are the classes' shares, leave numClasses of the evaluation's ImageInput null.",
    );
  }
});
