/** @file Metrics by class: counts by label and prediction, shares, names of classes, padding, and labels that are none. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HostTensor } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import { type BaseEvalMetric, ConfusionMatrix, Evaluation, PrecisionRecall } from '../../src/tasks/index.js';

const floats = (shape: number[], data: readonly number[]): HostTensor => ({
  shape,
  dtype: 'float32',
  data: Float32Array.from(data),
});

interface Row {
  readonly logits: readonly number[];
  readonly label: number;
  readonly weight: number;
}

/** The table of a metric over rows, in batches of `size`. */
function tableOf(
  metric: Config<BaseEvalMetric>,
  rows: readonly Row[],
  size: number,
  names: readonly string[] | null = null,
) {
  const evaluation = new Evaluation({ table: build(metric) }, null, (path) =>
    path === 'labels' ? names : null,
  );
  for (let at = 0; at < rows.length; at += size) {
    const batch = rows.slice(at, at + size);
    const labels: HostTensor = {
      ...{ shape: [batch.length], dtype: 'int32' as const },
      data: Int32Array.from(batch, ({ label }) => label),
    };
    const logits = floats(
      [batch.length, batch[0]!.logits.length],
      batch.flatMap((row) => row.logits),
    );
    const weights = floats(
      [batch.length],
      batch.map(({ weight }) => weight),
    );
    evaluation.add({ metrics: {}, examples: { logits } }, { labels, weights });
  }
  return evaluation.result().tables.table;
}

const rows: Row[] = [
  { logits: [2, 1, 0], label: 0, weight: 1 },
  { logits: [0, 1, 0], label: 0, weight: 1 },
  { logits: [0, 3, 0], label: 1, weight: 2 },
  { logits: [Number.NaN, Number.NaN, 9], label: 77, weight: 0 },
];

test('a confusion matrix has labels in rows and predictions in columns, and the names of the classes', () => {
  const names = ['cat', 'dog', 'cow'];
  expect(tableOf(ConfusionMatrix.config(), rows, 3, names)).toEqual({
    rows: names,
    columns: names,
    values: [
      [1, 1, 0],
      [0, 2, 0],
      [0, 0, 0],
    ],
  });
  const shares = tableOf(ConfusionMatrix.config({ normalize: true }), rows, 2)!;
  expect(shares.rows).toEqual(['0', '1', '2']);
  expect(shares.values).toEqual([
    [0.5, 0.5, 0],
    [0, 1, 0],
    [Number.NaN, Number.NaN, Number.NaN],
  ]);
});

test('precision, recall and F1 of each class; NaN where there is nothing to be a share of', () => {
  expect(tableOf(PrecisionRecall.config(), rows, 1)).toEqual({
    rows: ['0', '1', '2'],
    columns: ['precision', 'recall', 'f1', 'weight'],
    values: [
      [1, 0.5, 2 / 3, 2],
      [2 / 3, 1, 0.8, 2],
      [Number.NaN, Number.NaN, Number.NaN, 0],
    ],
  });
});

test('tables do not depend on how rows are batched, nor on what stands in rows of weight 0', () => {
  const row = fc.record({
    logits: fc.tuple(fc.integer({ min: -3, max: 3 }), fc.integer({ min: -3, max: 3 })),
    label: fc.integer({ min: 0, max: 1 }),
    weight: fc.constantFrom(0, 1, 2),
  });
  fc.assert(
    fc.property(
      fc.array(row, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 5 }),
      (all, size) => {
        const spoilt = all.map((each) =>
          each.weight === 0 ? { ...each, logits: [Number.NaN, Infinity], label: -7 } : each,
        );
        const whole = tableOf(ConfusionMatrix.config(), all, all.length);
        expect(tableOf(ConfusionMatrix.config(), spoilt, size)).toEqual(whole);
        const total = whole!.values.flat().reduce((a, b) => a + b, 0);
        expect(total).toBe(all.reduce((sum, { weight }) => sum + weight, 0));
      },
    ),
    { numRuns: 50 },
  );
});

test('a label that is no class is refused', () => {
  const wrong = [{ logits: [1, 0], label: 2, weight: 1 }];
  expect(() => tableOf(ConfusionMatrix.config(), wrong, 1)).toThrow(
    'label 2 is none of the 2 classes that the logits have',
  );
});
