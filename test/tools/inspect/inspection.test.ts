/** @file What `luthier inspect` finds in datasets: segments, statistics, values, images. */
import { decode } from 'fast-png';
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Config } from '../../../src/hparams/index.js';
import {
  ArrayFeature,
  type BaseInput,
  type Batch,
  ClassFeature,
  LanguageModelFeatures,
  type LmBatch,
  MultiInput,
  NumberFeature,
  RecordInput,
  RowInput,
  SyntheticLmInput,
} from '../../../src/inputs/index.js';
import { plain } from '../../../src/system/text/terminalOutput.js';
import { inspectInput } from '../../../src/tools/inspect/inspection.js';
import { inspectReport } from '../../../src/tools/inspect/inspectReport.js';
import { numbersTask, seqio } from '../../inputs/seqio/corpora.js';

const inspect = (config: Config<BaseInput>, values = {}) =>
  inspectInput(config, { count: 3, batches: 1, shards: 0, pictures: false, ...values });

const reportOf = (inspection: Awaited<ReturnType<typeof inspect>>, paint = plain) =>
  inspectReport({
    ...{ experiment: 'own.Own', dataset: { name: 'test', path: 'datasets[0]' }, inspection },
    ...{ length: 4, files: { inputs: 'grid.png' } },
  }).text(paint);

/** Four examples of one, two or three numbers and the end of sequence, two of which fill a row. */
const packed = seqio({
  mixtureOrTask: numbersTask({ count: 4, sizes: [3, 2, 1] }),
  featureConverter: LanguageModelFeatures.config({ pack: true }),
  name: 'packed',
});

test('cuts packed rows into their segments, and counts tokens, padding and weights', async () => {
  const { examples, tokens, isWhole, problems } = await inspect(packed, { batches: 5 });
  const segments = examples.flatMap(({ sequences }) => sequences.ids!);
  expect(segments.map(({ ids }) => ids.length).sort()).toEqual([2, 3, 4, 4]);
  const longest = segments.find(({ text }) => text === '. 0 0 0')!;
  expect(longest).toMatchObject({ ids: [0, 2, 2, 2], weights: [1, 1, 1, 1], target: null });
  expect(tokens).toMatchObject([
    {
      ...{ path: 'ids', rows: 2, positions: 16, tokens: 13, segmentsPerRow: 2, distinct: 5 },
      ...{ tokensPerRow: { min: 5, mean: 6.5, max: 8 }, paddingShare: 3 / 16, weightShare: 13 / 16 },
      ...{ vocabSize: 1002, unknown: null, outside: 0 },
    },
  ]);
  expect(tokens[0]!.frequent[0]).toEqual({ id: 0, count: 4, share: 4 / 13, text: '.' });
  expect(isWhole).toBe(true);
  expect(problems).toEqual([]);
});

test('shows the labels that count where they are not just the next tokens', async () => {
  const prefixLm = seqio({
    mixtureOrTask: numbersTask({ count: 1, sizes: [2] }),
    featureConverter: LanguageModelFeatures.config({ bosId: 7 }),
    batchSize: 1,
  });
  const { examples } = await inspect(prefixLm);
  expect(examples[0]!.sequences.ids).toMatchObject([{ text: '5 0 0', target: null }]);
  const [segment] = examples[0]!.sequences.ids!;
  const shown = { ...segment!, weights: [0, 0, 1], target: '.' };
  const inspection = {
    ...(await inspect(prefixLm)),
    examples: [{ ...examples[0]!, sequences: { ids: [shown] } }],
  };
  const painted = reportOf(inspection, (style, text) => `<${style}>${text}</>`);
  expect(painted).toContain('ids     <dim>7</> <dim>2</> 2\n');
  expect(painted).toContain('text    <cyan>5 0 0</>\n');
  expect(painted).toContain('target  <cyan>.</>\n');
});

test('reports as text that pipes and files can keep', async () => {
  const text = reportOf(await inspect(packed, { count: 1, batches: 5 }));
  expect(text).toContain(
    [
      "own.Own, dataset 'test' (datasets[0]): SeqioInput",
      '1 batch of 2 rows, all the data',
      '',
      'array       shape   dtype    min  max    mean',
    ].join('\n'),
  );
  expect(text).toContain(
    '  padding         18.75 %\n  weight          81.25 %\n  ids             5 of 1,002 occur\n',
  );
  expect(text).toMatch(
    /Batch 0, row 0: \d tokens of ids in \d segments?\n {2}segment 1: positions 0 to \d, weight/,
  );
});

test('finds ids that the vocabulary lacks, and values that are no numbers', async () => {
  class Broken extends SyntheticLmInput.with({}) {
    override async getNext(): Promise<Batch> {
      const batch = (await super.getNext()) as LmBatch;
      batch.ids.data[0] = 9;
      batch.weights.data[1] = Number.NaN;
      return batch;
    }
  }
  const inspection = await inspect(Broken.config({ seqLen: 4, vocabSize: 8, batchSize: 1 }), { count: 1 });
  expect(inspection.problems).toEqual([
    'weights: 1 of the values are NaN or infinite.',
    'ids: 1 of the ids and labels are not from 0 to 7.',
  ]);
  expect(inspectReport({ ...({} as Parameters<typeof inspectReport>[0]), inspection }).exitCode).toBe(1);
});

test('shows the features of tables, and sequences beside them', async () => {
  const table = RecordInput.config({
    source: [
      { x: [0.1, 2], y: 'b', size: 7 },
      { x: [3, -4], y: 'a', size: 8 },
    ],
    features: {
      inputs: ArrayFeature.config({ column: 'x', shape: [2] }),
      labels: ClassFeature.config({ column: 'y', classes: ['a', 'b'] }),
      size: NumberFeature.config({ columns: 'size' }),
    },
    ...{ split: 'all', batchSize: 3 },
  });
  const inspection = await inspect(table);
  expect(inspection.arrays[0]).toMatchObject({
    path: 'inputs',
    shape: [3, 2],
    dtype: 'float32',
    min: -4,
    max: 3,
  });
  expect(reportOf(inspection)).toContain(
    ['batch  row  inputs  labels  size  weights', '    0    0  0.1 2   1 (b)      7        1'].join('\n'),
  );
  const text = SyntheticLmInput.config({ seqLen: 4, vocabSize: 8, batchSize: 6 });
  const both = MultiInput.config({ inputs: { text, table }, batchSize: 3, evalLoopNumBatches: 1 });
  const { examples, tokens } = await inspect(both, { count: 1 });
  expect(examples[0]!.sequences['text.ids']!.map(({ ids }) => ids.length)).toEqual([4, 4]);
  expect(examples[0]!.values['table.size']).toEqual({ first: [7], size: 1, names: null });
  expect(examples[0]!.values['table.labels']).toMatchObject({ first: [1], names: ['b'] });
  expect(tokens).toMatchObject([{ path: 'text.ids', rows: 6, vocabSize: 8 }]);
});

/** Images of one colour, the n-th of value n. */
class Plain extends RowInput.with({ numImages: z.int() }) {
  protected override get numRows(): number {
    return this.hp.numImages;
  }
  protected override emptyBatch() {
    const { batchSize } = this.hp;
    return {
      inputs: { shape: [batchSize, 2, 2, 1], dtype: 'float32', data: new Float32Array(batchSize * 4) },
      labels: { shape: [batchSize], dtype: 'int32', data: new Int32Array(batchSize) },
    } as const;
  }
  protected override fillRow(row: number, batch: ReturnType<Plain['emptyBatch']>, b: number): void {
    batch.inputs.data.fill(row, b * 4, b * 4 + 4);
    batch.labels.data[b] = 10 + row;
  }
  protected override identity() {
    return {};
  }
}

test('draws images in a grid, on a scale that holds all their values', async () => {
  const inspection = await inspect(Plain.config({ numImages: 5, batchSize: 5 }), { pictures: true });
  const { png, ...grid } = inspection.pictures.get('inputs')!;
  expect(grid).toEqual({
    columns: 3,
    images: 5,
    range: [0, 4],
    labels: [10, 11, 12, 13, 14],
    labelNames: null,
  });
  const picture = decode(png);
  // 2 pixels of 32 each, and 2 between images.
  expect(picture).toMatchObject({ width: 3 * 64 + 2 * 2, height: 2 * 64 + 2, channels: 1 });
  const at = (x: number, y: number) => picture.data[y * picture.width + x];
  expect([at(10, 10), at(76, 10), at(190, 60), at(10, 76), at(76, 129)]).toEqual([0, 64, 128, 191, 255]);
  expect(inspection.examples[0]!.values).toEqual({ labels: { first: [10], size: 1, names: null } });
  expect(reportOf(inspection)).toContain(
    'Wrote grid.png: 5 images of inputs, 3 in a row; black is 0, white 4; labels:\n  10  11  12\n  13  14',
  );
});

test('says where there is no data', async () => {
  await expect(inspect(Plain.config({ numImages: 0, batchSize: 1 }))).rejects.toThrow(
    "Input 'input' has no data: it ends before the first batch.",
  );
});
