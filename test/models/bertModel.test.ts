/** @file BertModel: Pax's sizes, masks that are given and drawn, metrics by hand, bad settings. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config, validate } from '../../src/hparams/index.js';
import type { TransformerLm } from '../../src/layers/index.js';
import { BertModel, type PaxLmOptions, paxLm } from '../../src/models/index.js';
import { expectClose, ints, randomTheta, run } from '../layers/helpers.js';
import { parameterCount } from '../layers/sineFill.js';

const bert = (options: PaxLmOptions): Config<TransformerLm> => {
  const lmTpl = paxLm(options);
  lmTpl.modelType = 'bidirectional';
  return lmTpl;
};

test('the sizes of the networks that Pax publishes', () => {
  const size = (options: Omit<PaxLmOptions, 'vocabSize'>) =>
    parameterCount(build(BertModel.config({ lmTpl: bert({ vocabSize: 32_000, ...options }) })));
  expect(size({ numLayers: 4, modelDims: 128, numHeads: 8 })).toBe(4_919_360);
  const wide = { modelDims: 12_288, numHeads: 128, hiddenDims: 8 * 12_288 };
  expect(size({ numLayers: 33, ...wide })).toBe(100_055_210_336);
  expect(size({ numLayers: 66, ...wide })).toBe(199_717_148_096);
});

const [B, T, V] = [2, 5, 9];
const lmTpl = () => bert({ vocabSize: V, modelDims: 8, numLayers: 1, numHeads: 2 });
const LABELS = [3, 1, 4, 1, 5, 2, 6, 5, 0, 0];
const batchOf = (extra: Record<string, Tensor> = {}): Record<string, Tensor> => ({
  labels: ints(LABELS, [B, T]),
  paddings: tf.tensor2d([0, 0, 0, 0, 0, 0, 0, 0, 1, 1], [B, T]),
  segmentIds: ints([1, 1, 2, 2, 2, 1, 1, 1, 0, 0], [B, T]),
  segmentPos: ints([0, 1, 0, 1, 2, 0, 1, 2, 0, 0], [B, T]),
  ...extra,
});
const given = () => ({
  maskedIds: ints([3, 8, 4, 1, 8, 2, 6, 8, 0, 0], [B, T]),
  maskedPos: tf.tensor2d([0, 1, 0, 0, 1, 0, 0, 1, 0, 0], [B, T]) as Tensor,
});

test('masks that are given: metrics by hand', () => {
  const model = build(BertModel.config({ lmTpl: lmTpl(), maskTokenId: 8 }));
  const theta = randomTheta(model);
  const batch = batchOf(given());
  const [predictions, [metrics, perExample]] = run(theta, () => {
    const found = model.computePredictions(batch);
    return [found, model.computeLoss(found, batch)] as const;
  });
  const logProbs = tf.logSoftmax(predictions.logits).arraySync() as number[][][];
  const places = [
    [0, 1],
    [0, 4],
    [1, 2],
  ] as const;
  const of = ([b, t]: readonly [number, number]) => [logProbs[b]![t]!, LABELS[b * T + t]!] as const;
  const xent = places.reduce((sum, place) => {
    const [row, label] = of(place);
    return sum - row[label]! / 3;
  }, 0);
  const right = places.filter((place) => {
    const [row, label] = of(place);
    return row.indexOf(Math.max(...row)) === label;
  }).length;
  const expected: Record<string, [number, number]> = {
    ...{ total_loss: [xent, 3], avg_xent: [xent, 3], aux_loss: [0, 3], log_pplx: [xent, 3] },
    ...{ fraction_of_correct_preds: [right / 3, 3], num_predictions: [3, 1] },
    // Two sequences in row 0, one in row 1.
    ...{ num_tokens: [8, 1], num_seqs: [3, 1] },
  };
  expect(Object.keys(metrics)).toEqual(Object.keys(expected));
  for (const [name, values] of Object.entries(expected)) expectClose(tf.stack([...metrics[name]!]), values);
  expect(Object.keys(perExample)).toEqual([
    ...['labels', 'per_sequence_xent', 'predicted_labels', 'augmented_labels'],
  ]);
  // A hidden token is in no other way seen: its label changes the loss alone.
  const changed = run(theta, () =>
    model.computePredictions(batchOf({ ...given(), labels: ints([3, 7, 4, 1, 5, 2, 6, 5, 0, 0], [B, T]) })),
  );
  expectClose(changed.logits, predictions.logits.dataSync());
});

test('masks that are drawn: anew for each key, never padding, and forced beside given ones', () => {
  const config = BertModel.config({ lmTpl: lmTpl(), maskTokenId: 8 });
  const seen = (batch: Record<string, Tensor>, key: number[], forceMaskGeneration = false) => {
    const model = build(Object.assign(config, { forceMaskGeneration }));
    const { augmentedLabels, augmentedPos } = run(randomTheta(model), () => model.computePredictions(batch), {
      prngKey: ints(key, [2]),
    });
    return [...augmentedLabels.dataSync(), ...augmentedPos.dataSync()];
  };
  const draws = Array.from({ length: 30 }, (_, i) => seen(batchOf(), [1, i]));
  expect(new Set(draws.map(String)).size).toBeGreaterThan(5);
  const masked = draws.flatMap((draw) => draw.slice(B * T)).reduce((sum, x) => sum + x, 0);
  // 15 % of 240 tokens.
  expect(masked).toBeGreaterThan(18);
  expect(masked).toBeLessThan(56);
  for (const draw of draws) for (const at of [8, 9]) expect([draw[at], draw[B * T + at]]).toEqual([0, 0]);
  const own = [...given().maskedIds.dataSync(), ...given().maskedPos.dataSync()];
  expect(seen(batchOf(given()), [1, 2])).toEqual(own);
  expect(seen(batchOf(given()), [1, 2], true)).toEqual(seen(batchOf(), [1, 2]));
});

test('a network that sees one side, a mask token beyond the vocabulary', () => {
  const config = BertModel.config({ lmTpl: lmTpl(), maskTokenId: V });
  Object.assign(config.lmTpl, { modelType: 'causal', packedInput: false });
  expect(validate(config).map((problem) => String(problem).replace(/ \(at .*/, ''))).toEqual([
    "lmTpl.modelType (BertModel): expected 'bidirectional'; lmTpl.modelType is 'causal'",
    'lmTpl.packedInput (BertModel): expected true; lmTpl.packedInput is false',
    'maskTokenId (BertModel): expected an id below lmTpl.vocabSize (9); maskTokenId is 9',
  ]);
});
