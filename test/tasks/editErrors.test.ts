/** @file Error rates by edit distance. */
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { EditErrorRate } from '../../src/tasks/index.js';

const int32 = (shape: number[], rows: number[][]) => ({
  ...{ shape, dtype: 'int32' as const },
  data: Int32Array.from(rows.flatMap((row) => [...row, ...new Array(shape[1]! - row.length).fill(0)])),
});
const ids = (text: string): number[] => Array.from(text, (letter) => letter.charCodeAt(0) - 96);

/** Pairs as a batch: blanks between predicted symbols, labels with padding behind. */
function batchOf(pairs: readonly (readonly [predicted: string, label: string])[]) {
  const labels = pairs.map(([, label]) => ids(label));
  return {
    predicted_ids: int32(
      [pairs.length, 20],
      pairs.map(([text]) => ids(text).flatMap((id) => [id, 0])),
    ),
    labels: int32([pairs.length, 9], labels),
    label_paddings: {
      ...{ shape: [pairs.length, 9], dtype: 'float32' as const },
      data: Float32Array.from(
        labels.flatMap(({ length }) => Array.from({ length: 9 }, (_, i) => +(i >= length))),
      ),
    },
  };
}

test('edits of all rows by all labels, whatever the batches are', () => {
  const pairs = [
    ['kitten', 'sitting'],
    ['', 'abc'],
    ['flaw', 'lawn'],
    ['same', 'same'],
    ['padding', ''],
  ] as const;
  // 3 + 3 + 2 + 0 edits; a row without labels is padding.
  const expected = { value: 8 / 18, weight: 18 };
  const metric = build(EditErrorRate.config());
  expect(metric.tensorNames()).toEqual(['predicted_ids', 'labels', 'label_paddings']);
  for (const batches of [[pairs], pairs.map((pair) => [pair])]) {
    const accumulation = metric.accumulate();
    for (const batch of batches) accumulation.add(batchOf(batch));
    expect(accumulation.result({})).toEqual(expected);
  }
});

test('with weights, a row of weight 0 is padding, and one without labels is all insertions', () => {
  const accumulation = build(EditErrorRate.config({ weights: 'weights' })).accumulate();
  const weights = { shape: [3], dtype: 'float32' as const, data: Float32Array.of(1, 1, 0) };
  accumulation.add({
    ...batchOf([
      ['ab', 'a'],
      ['abc', ''],
      ['x', 'y'],
    ]),
    weights,
  });
  expect(accumulation.result({})).toEqual({ value: 4, weight: 1 });
});
