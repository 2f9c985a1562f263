/** @file What inputs say of their batches, against the batches that they give. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type BaseInput,
  type Batch,
  batchCount,
  ImageFolder,
  ImageInput,
  InputError,
  openInput,
  RowInput,
  SyntheticLmInput,
  specsOf,
  TextInput,
} from '../../src/inputs/index.js';
import { corpusDirectory } from './corpus.js';
import { CountingInput } from './ownInput.js';

/** Rows of one number each, in an array of their own. */
class NumberInput extends RowInput.with({}) {
  protected override get numRows(): number {
    return 4;
  }
  protected override emptyBatch(): Batch {
    const { batchSize } = this.hp;
    const numbers = { shape: [batchSize, 1], dtype: 'float32', data: new Float32Array(batchSize) } as const;
    const odd = { shape: [batchSize], dtype: 'bool', data: new Uint8Array(batchSize) } as const;
    return { inner: { odd }, numbers };
  }
  protected override fillRow(row: number, batch: Batch, b: number): void {
    (batch.numbers as { data: Float32Array }).data[b] = row;
  }
  protected override identity() {
    return {};
  }
}

const files = [
  join(corpusDirectory({ 'a.txt': 'It was the best of times, it was the worst of times.' }), 'a.txt'),
];
const text = { files, split: 'all', seqLen: 7, batchSize: 3 } as const;

const inputs: Record<string, Config<BaseInput>> = {
  'text in windows': TextInput.config(text),
  'text, packed': TextInput.config({ ...text, packed: true }),
  'text for training': TextInput.config({ ...text, isTraining: true, numInfeedHosts: 2, infeedHostIndex: 1 }),
  'synthetic text': SyntheticLmInput.config({ seqLen: 5, vocabSize: 11, batchSize: 4 }),
  'rows of a class of its own': NumberInput.config({ batchSize: 3 }),
};

test.each(Object.entries(inputs))('%s', async (_, config) => {
  const input = build(config);
  const said = input.batchSpecs();
  expect(said).toEqual(specsOf(await input.getNext()));
  // In the same order, which is that of a program's inputs.
  expect(Object.keys(said)).toEqual(Object.keys(await input.getNext()));
});

test('no data is read, and no batch is made', () => {
  const absent = build(
    TextInput.config({ ...text, files: ['/nowhere/*.txt'], batchSize: 2 ** 20, seqLen: 2 ** 20 }),
  );
  const spec = (dtype: string) => ({ shape: [2 ** 20, 2 ** 20], dtype });
  expect(absent.batchSpecs()).toEqual({
    ids: spec('int32'),
    labels: spec('int32'),
    paddings: spec('float32'),
    weights: spec('float32'),
  });
});

test('an input of its own that does not say it', () => {
  const input = build(CountingInput.config({ name: 'counts', batchSize: 1 }));
  expect(() => input.batchSpecs()).toThrow(
    new InputError(
      "Input 'counts' (CountingInput) does not declare the shapes of its batches: give the class a batchSpecs() method.",
    ),
  );
});

test('an input says what counts in its batches: positions of tokens, images, rows of any other', async () => {
  const counted = (input: BaseInput) => batchCount(input.batchSpecs(), input.batchUnit);
  expect(counted(build(inputs['text in windows']!))).toEqual({ count: 21, unit: 'tokens' });
  expect(counted(build(inputs['synthetic text']!))).toEqual({ count: 20, unit: 'tokens' });
  const source = ImageFolder.config({ directory: 'unread' });
  const images = ImageInput.config({
    source,
    height: 2,
    width: 3,
    batchSize: 4,
    prefetchBatches: 1,
    isTraining: true,
  });
  expect(counted(build(images))).toEqual({ count: 4, unit: 'images' });
  expect(
    batchCount({ inner: { x: { shape: [8, 2], dtype: 'float32' } } }, { unit: 'frames', dims: 2 }),
  ).toEqual({
    count: 16,
    unit: 'frames',
  });
  const ahead = openInput(
    SyntheticLmInput.config({ ...{ batchSize: 1, seqLen: 2, vocabSize: 2 }, prefetchBatches: 1 }),
  );
  expect(ahead.batchUnit).toEqual({ unit: 'tokens', dims: 2 });
  await ahead.close();
});
