/** @file ScalarQuantizer and LookupFreeQuantizer against plain loops; codes and back. */
import { describe, expect, test } from 'vitest';
import { tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import { LookupFreeQuantizer, ScalarQuantizer } from '../../../src/layers/index.js';
import { expectClose, ints, run, tensor } from '../helpers.js';

const rows = (x: tf.Tensor): number[][] => x.arraySync() as number[][];

describe.each(['sine', 'tanh'] as const)('ScalarQuantizer, %s', (boundMethod) => {
  const dimWidths = [8, 5, 4];
  const layer = build(ScalarQuantizer.config({ dimWidths, boundMethod }));
  test('rounds to values around 0, whose digits are the code', () => {
    const x = tf.mul(tensor([7, 3], 4), 3);
    const bound = boundMethod === 'sine' ? Math.sin : Math.tanh;
    const digits = rows(x).map((row) =>
      row.map((value, i) => Math.round((bound(value) * dimWidths[i]! * 0.999) / 2 + (dimWidths[i]! - 1) / 2)),
    );
    for (const doEval of [false, true]) {
      const { quantized, encodingIndices } = run({}, () => layer.fprop(x), { doEval });
      expectClose(
        quantized,
        digits.flatMap((row) => row.map((digit, i) => digit - (dimWidths[i]! - 1) / 2)),
      );
      expect([...encodingIndices.dataSync()]).toEqual(digits.map(([a, b, c]) => (a! * 5 + b!) * 4 + c!));
    }
  });
  test('decodes each code to the numbers that have it', () => {
    const codes = Array.from({ length: 160 }, (_, i) => i);
    const numbers = run({}, () => layer.decodeIds(ints(codes, [160])));
    const inverse = boundMethod === 'sine' ? Math.asin : Math.atanh;
    const x = tf.tensor2d(rows(numbers).map((row) => row.map((n, i) => inverse((2 * n) / dimWidths[i]!))));
    expect([...run({}, () => layer.fprop(x)).encodingIndices.dataSync()]).toEqual(codes);
  });
});

/** Entropy loss by all codes of each group of elements `of(group, i)`. */
function entropyLoss(x: number[][], groupings: readonly number[][][], temperature: number): number {
  const soft = (value: number, sign: number): number => 1 / (1 + Math.exp((-4 * sign * value) / temperature));
  const depth = x[0]!.length;
  let each = 0;
  for (const row of x)
    for (let d = 0; d < depth; d++)
      for (const sign of [-1, 1]) each -= (soft(row[d]!, sign) * Math.log(soft(row[d]!, sign))) / x.length;
  const entropies = groupings.flat().length;
  let means = 0;
  for (const group of groupings.flat())
    for (let code = 0; code < 2 ** group.length; code++) {
      const share =
        x.reduce(
          (sum, row) => sum + group.reduce((p, d, i) => p * soft(row[d]!, (code >> i) & 1 ? 1 : -1), 1),
          0,
        ) / x.length;
      means -= share * Math.log(share + 1e-5);
    }
  return each - means / entropies;
}

describe('LookupFreeQuantizer', () => {
  test.each([
    [1, [[[0, 1, 2, 3, 4, 5]]]],
    [
      2,
      [
        [
          [0, 1, 2],
          [3, 4, 5],
        ],
        [
          [0, 2, 4],
          [1, 3, 5],
        ],
      ],
    ],
  ])('has the losses of %s groups', (entropyLossGroups, groupings) => {
    const layer = build(
      LookupFreeQuantizer.config({ embeddingDim: 6, entropyLossGroups, entropyTemperature: 0.7 }),
    );
    const x = tensor([5, 6], 9);
    const outputs = run({}, () => layer.fprop(x));
    const distances = rows(x).flatMap((row) => row.map((value) => (Math.abs(value) - 1) ** 2));
    const commitment = (0.25 * distances.reduce((a, b) => a + b, 0)) / 30;
    const entropy = 0.1 * entropyLoss(rows(x), groupings, 0.7);
    expectClose(outputs.eLatentLoss, [commitment]);
    expectClose(outputs.entropyLoss, [entropy]);
    expectClose(outputs.quantizerLoss, [commitment + entropy]);
  });

  test.each([
    [1, [10]],
    [2, [2, 1]],
    [3, [2, 2, 0]],
  ])('has codes of %s groups, and back', (numTokenGroups, codes) => {
    const layer = build(
      LookupFreeQuantizer.config({ embeddingDim: numTokenGroups === 3 ? 5 : 4, numTokenGroups }),
    );
    const signs = numTokenGroups === 2 ? [-1, 1, 1, -1] : [-1, 1, -1, 1, -1].slice(0, layer.hp.embeddingDim);
    const x = tf.mul(tf.tensor2d([signs]), 0.3);
    const { quantized, encodingIndices } = run({}, () => layer.fprop(x), { doEval: true });
    expect([...encodingIndices.dataSync()]).toEqual(codes);
    expect([...quantized.dataSync()]).toEqual(signs);
    expect([...run({}, () => layer.decodeIds(encodingIndices)).dataSync()]).toEqual(signs);
  });
});

test('refuses depths and groups that do not fit', () => {
  expect(() => build(LookupFreeQuantizer.config({ embeddingDim: 6, entropyLossGroups: 4 }))).toThrow(
    'embeddingDim: expected a multiple of entropyLossGroups 4, got 6.',
  );
  expect(() =>
    build(LookupFreeQuantizer.config({ entropyLossGroups: 2, entropyLossType: 'argmax' })),
  ).toThrow("entropyLossType: expected 'softmax' for several entropyLossGroups, got 'argmax'.");
  const layer = build(ScalarQuantizer.config({ dimWidths: [4, 4] }));
  expect(() => run({}, () => layer.fprop(tensor([2, 3])))).toThrow(
    'expected inputs [..., 2] for dimWidths, got [2, 3].',
  );
});
