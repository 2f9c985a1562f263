/** @file What inputs say of their batches, against the batches that they give. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type BaseInput,
  type Batch,
  batchCount,
  InputError,
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
      "Input 'counts' (CountingInput) does not say what its batches look like: give the class a batchSpecs() method.",
    ),
  );
});

test('a batch counts as its tokens, or as its rows', () => {
  const float = (...shape: number[]) => ({ shape, dtype: 'float32' as const });
  expect(batchCount(build(inputs['text in windows']!).batchSpecs())).toEqual({ count: 21, unit: 'tokens' });
  expect(batchCount({ inner: { image: float(8, 28, 28) }, label: float(9) })).toEqual({
    count: 8,
    unit: 'examples',
  });
  expect(batchCount({ ids: { ids: float(6, 2) } })).toEqual({ count: 6, unit: 'examples' });
  expect(batchCount({})).toEqual({ count: 1, unit: 'examples' });
});
