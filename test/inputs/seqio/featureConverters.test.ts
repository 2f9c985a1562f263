/** @file Feature converters: what a batch holds of given examples. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  type BaseFeatureConverter,
  type Batch,
  type DataRecord,
  Feature,
  IterableSource,
  LanguageModelFeatures,
  MaskedLanguageModelFeatures,
  PreferenceFeatures,
  SeqioInput,
  SequenceModelFeatures,
  SequencePreferenceFeatures,
  specsOf,
  Task,
} from '../../../src/inputs/index.js';
import { NumberTokenizer } from './corpora.js';

class Given extends IterableSource.with({ examples: z.array(z.record(z.string(), z.array(z.int()))) }) {
  protected override records(): Iterable<DataRecord> {
    return this.hp.examples;
  }
}

const feature = () => Feature.config({ tokenizer: NumberTokenizer.config() });

function inputOf(
  examples: Record<string, number[]>[],
  featureConverter: Config<BaseFeatureConverter>,
  taskFeatureLengths: Record<string, number>,
  values: object = {},
): SeqioInput {
  const features = Object.fromEntries(Object.keys(taskFeatureLengths).map((name) => [name, feature()]));
  const mixtureOrTask = Task.config({ source: Given.config({ examples }), preprocessors: [], features });
  return build(
    SeqioInput.config({
      ...{ mixtureOrTask, splitName: 'all', taskFeatureLengths, featureConverter, batchSize: 1 },
      ...values,
    }),
  );
}

/** The first row of each array, by path. */
function rowsOf(batch: Batch, prefix = ''): Record<string, number[]> {
  const rows: Record<string, number[]> = {};
  for (const [name, value] of Object.entries(batch)) {
    const { shape, data } = value as { shape?: number[]; data?: Int32Array };
    if (data === undefined) Object.assign(rows, rowsOf(value as Batch, `${prefix}${name}.`));
    else rows[prefix + name] = [...data.subarray(0, shape![1] ?? 1)];
  }
  return rows;
}

test('a decoder reads what it predicted before; an over-long text is cut and keeps its end', async () => {
  const given = [{ targets: [5, 6, 1] }, { targets: [5, 6, 7, 8, 9, 1] }, { targets: [5, 6, 7, 8, 9] }];
  const input = inputOf([...given, { targets: [] }], LanguageModelFeatures.config({ bosId: 3 }), {
    targets: 4,
  });
  expect(rowsOf(await input.getNext())).toEqual({
    ids: [3, 5, 6, 0],
    labels: [5, 6, 1, 0],
    paddings: [0, 0, 0, 1],
    weights: [1, 1, 1, 0],
    segmentIds: [1, 1, 1, 0],
    segmentPos: [0, 1, 2, 0],
    exampleIds: [0],
  });
  expect(rowsOf(await input.getNext()).labels).toEqual([5, 6, 7, 1]);
  expect(rowsOf(await input.getNext()).labels).toEqual([5, 6, 7, 8]);
  expect(rowsOf(await input.getNext())).toMatchObject({ paddings: [1, 1, 1, 1], exampleIds: [3] });
  const strict = inputOf(
    given.slice(1),
    LanguageModelFeatures.config(),
    { targets: 4 },
    { trimOutputFeatures: false },
  );
  await expect(strict.getNext()).rejects.toThrow(
    "SeqioInput 'input': record 0: feature 'targets' has 6 tokens, and taskFeatureLengths allows 4. " +
      'Split or trim it, or set trimOutputFeatures.',
  );
});

test('packed rows begin anew in each segment', async () => {
  const given = [{ targets: [5, 6] }, { targets: [7, 8, 9] }, { targets: [4] }];
  const nextFit = LanguageModelFeatures.config({ pack: true, packing: 'next fit' });
  const input = inputOf(given, nextFit, { targets: 6 });
  expect(rowsOf(await input.getNext())).toEqual({
    ids: [0, 5, 0, 7, 8, 0],
    labels: [5, 6, 7, 8, 9, 4],
    paddings: [0, 0, 0, 0, 0, 0],
    weights: [1, 1, 1, 1, 1, 1],
    segmentIds: [1, 1, 2, 2, 2, 3],
    segmentPos: [0, 1, 0, 1, 2, 0],
  });
});

test.each([
  [null, [1, 0, 1, 1, 0]],
  [true, [0, 0, 1, 1, 0]],
  [false, [1, 1, 1, 1, 0]],
])('a prefix LM with weightsOnTargetsOnly %s', async (weightsOnTargetsOnly, weights) => {
  const converter = LanguageModelFeatures.config({ weightsOnTargetsOnly });
  const input = inputOf([{ inputs: [5, -6], targets: [7, 1] }], converter, { inputs: 2, targets: 3 });
  const batch = await input.getNext();
  expect(rowsOf(batch)).toMatchObject({
    ids: [0, 5, 6, 7, 0],
    labels: [5, 6, 7, 1, 0],
    weights,
    inputsIndicator: [1, 1, 0, 0, 0],
  });
  expect(input.batchSpecs()).toEqual(specsOf(batch));
  expect(input.batchUnit).toEqual({ unit: 'tokens', dims: 2 });
});

test('an encoder and a decoder: segments have one number in both', async () => {
  const given = [
    { inputs: [5, 6, 1], targets: [7, 1] },
    { inputs: [8], targets: [9, 1] },
    { inputs: [3], targets: [4, 4] },
  ];
  const converter = SequenceModelFeatures.config({ pack: true, packing: 'next fit' });
  const input = inputOf(given, converter, { inputs: 6, targets: 4 });
  const batch = await input.getNext();
  expect(rowsOf(batch)).toEqual({
    'src.ids': [5, 6, 1, 8, 0, 0],
    'src.paddings': [0, 0, 0, 0, 1, 1],
    'src.segmentIds': [1, 1, 1, 2, 0, 0],
    'src.segmentPos': [0, 1, 2, 0, 0, 0],
    'tgt.ids': [0, 7, 0, 9],
    'tgt.labels': [7, 1, 9, 1],
    'tgt.paddings': [0, 0, 0, 0],
    'tgt.weights': [1, 1, 1, 1],
    'tgt.segmentIds': [1, 1, 2, 2],
    'tgt.segmentPos': [0, 1, 0, 1],
  });
  expect(input.batchSpecs()).toEqual(specsOf(batch));
  // The third fits the inputs, and not the targets.
  expect(rowsOf(await input.getNext())['src.ids']).toEqual([3, 0, 0, 0, 0, 0]);
});

test('an encoder predicts the tokens whose targets are not negative, id 0 among them', async () => {
  const input = inputOf(
    [{ inputs: [5, 99, 7], targets: [-5, 0, -(2 ** 31)] }],
    MaskedLanguageModelFeatures.config(),
    {
      ...{ inputs: 4, targets: 4 },
    },
  );
  expect(rowsOf(await input.getNext())).toMatchObject({
    ids: [5, 99, 7, 0],
    labels: [5, 0, 0, 0],
    weights: [0, 1, 0, 0],
  });
});

test('what a converter needs is checked before anything is read', () => {
  const build = (lengths: Record<string, number>) => () =>
    inputOf([], SequenceModelFeatures.config(), lengths);
  expect(build({ targets: 4 })).toThrow(
    "taskFeatureLengths has no 'inputs', which SequenceModelFeatures needs.",
  );
});

test('a pair has its prompt twice, with weight on the answers; one without an answer is an error', async () => {
  const lengths = { inputs: 3, chosen: 2, rejected: 3 };
  const pair = { inputs: [5, 6], chosen: [7, 1], rejected: [8, 9, 1] };
  const batch = await inputOf([pair], PreferenceFeatures.config({ bosId: 3 }), lengths).getNext();
  expect(rowsOf(batch)).toEqual({
    'chosen.ids': [3, 5, 6, 7, 0, 0],
    'chosen.labels': [5, 6, 7, 1, 0, 0],
    'chosen.paddings': [0, 0, 0, 0, 1, 1],
    'chosen.weights': [0, 0, 1, 1, 0, 0],
    'chosen.segmentIds': [1, 1, 1, 1, 0, 0],
    'chosen.segmentPos': [0, 1, 2, 3, 0, 0],
    'chosen.inputsIndicator': [1, 1, 0, 0, 0, 0],
    'rejected.ids': [3, 5, 6, 8, 9, 0],
    'rejected.labels': [5, 6, 8, 9, 1, 0],
    'rejected.paddings': [0, 0, 0, 0, 0, 1],
    'rejected.weights': [0, 0, 1, 1, 1, 0],
    'rejected.segmentIds': [1, 1, 1, 1, 1, 0],
    'rejected.segmentPos': [0, 1, 2, 3, 4, 0],
    'rejected.inputsIndicator': [1, 1, 0, 0, 0, 0],
    exampleIds: [0],
  });
  const sourced = rowsOf(
    await inputOf([pair], SequencePreferenceFeatures.config({ bosId: 3 }), lengths).getNext(),
  );
  expect(sourced).toMatchObject({
    'src.ids': [5, 6, 0],
    'src.segmentPos': [0, 1, 0],
    'src.paddings': [0, 0, 1],
    'chosen.ids': [3, 7, 0],
    'chosen.labels': [7, 1, 0],
    'chosen.weights': [1, 1, 0],
    'rejected.ids': [3, 8, 9],
    'rejected.labels': [8, 9, 1],
    'rejected.paddings': [0, 0, 0],
    exampleIds: [0],
  });
  const converter = PreferenceFeatures.config();
  const after = (second: Record<string, number[]>) =>
    inputOf([pair, second], converter, lengths, { batchSize: 2 });
  await expect(after({ ...pair, rejected: [1] }).getNext()).rejects.toThrow(
    "SeqioInput 'input': record 1: the pair has no rejected answer. A pair has inputs and two answers, chosen and rejected.",
  );
  await expect(after({ inputs: [5], rejected: [6] }).getNext()).rejects.toThrow(
    "SeqioInput 'input': record 1: the example has no 'chosen'. It has: inputs, rejected.",
  );
  expect(() => inputOf([pair], PreferenceFeatures.config({ pack: true }), lengths)).toThrow(
    'PreferenceFeatures.pack is true, and a row of pairs is one prompt with one answer.',
  );
});
