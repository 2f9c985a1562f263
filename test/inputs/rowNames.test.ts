/** @file Names of a batch's rows, found from a saved state: they name the records that the batch was made of. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, type Config, configurable, copyWith } from '../../src/hparams/index.js';
import {
  type BaseInput,
  type Batch,
  ByteTokenizer,
  JsonLinesSource,
  LanguageModelFeatures,
  type LmBatch,
  MultiInput,
  NumberFeature,
  openInput,
  RebatchedInput,
  RecordInput,
  StreamInput,
  TextInput,
} from '../../src/inputs/index.js';
import { temporaryDirectory } from '../command.js';
import { numbersIn, numbersTask, seqio } from './seqio/corpora.js';

const directory = temporaryDirectory();
const file = join(directory, 'numbers.jsonl');
writeFileSync(file, Array.from({ length: 23 }, (_, i) => `{"x": ${i}}\n`).join(''));
const features = { x: NumberFeature.config({ columns: 'x' }) };
const stream = configurable(
  function* stream({ count }: { count: number }) {
    for (let x = 0; x < count; x++) yield { x };
  },
  { count: z.int() },
);
const records = (values: Partial<Config<RecordInput>> = {}) =>
  RecordInput.config({
    ...{ features, source: JsonLinesSource.config({ files: [file] }), split: 'train', batchSize: 4 },
    ...values,
  });

const numbersOf = (batch: Batch) => {
  const { x, weights } = batch as Record<string, { data: Float32Array }>;
  return [...x!.data].filter((_, row) => weights!.data[row] !== 0);
};

/** The names of the rows of each batch beside the numbers in it, found after all batches were read. */
async function named(config: Config<BaseInput>, read: (batch: Batch) => unknown[], count = 9) {
  const input = openInput(
    config.prefetchBatches === null ? copyWith(config, { prefetchBatches: 0 }) : config,
  );
  const states = [];
  const batches: unknown[][] = [];
  for (let i = 0; i < count; i++) {
    states.push(input.getState());
    batches.push(read(await input.getNextPadded()));
  }
  const state = input.getState();
  const names = [];
  for (const before of states) names.push(await input.rowNames(before));
  expect(input.getState()).toEqual(state);
  await input.close();
  return { names, batches };
}

test.each([
  ['in its random order', { isTraining: true }],
  [
    'of the second of two hosts, read ahead',
    { isTraining: true, numInfeedHosts: 2, infeedHostIndex: 1, prefetchBatches: 2 },
  ],
])('records of a file %s: its lines', async (_, values) => {
  const { names, batches } = await named(records(values), numbersOf);
  expect(names).toEqual(batches.map((numbers) => numbers.map((x) => `${file}:${(x as number) + 1}`)));
});

test('a stream of records: their numbers, padding left out', async () => {
  const values = { features, split: 'all' as const, batchSize: 4 };
  const ending = StreamInput.config({ ...values, records: stream.partial({ count: 7 }) });
  const { names, batches } = await named(ending, numbersOf, 2);
  expect(names).toEqual([
    ['record 0', 'record 1', 'record 2', 'record 3'],
    ['record 4', 'record 5', 'record 6'],
  ]);
  expect(batches).toEqual([
    [0, 1, 2, 3],
    [4, 5, 6],
  ]);
  const training = { ...values, isTraining: true, shuffleBufferSize: 3 };
  const endless = StreamInput.config({ ...training, records: stream.partial({ count: 7 }) });
  const shuffled = await named(endless, numbersOf, 5);
  expect(shuffled.names).toEqual(shuffled.batches.map((numbers) => numbers.map((x) => `record ${x}`)));
});

test.each(['permuted', 'random', 'sequential'] as const)(
  'windows of a text, %s: their tokens',
  async (sampling) => {
    const text = Array.from({ length: 120 }, (_, i) => String.fromCharCode(65 + (i % 50))).join('');
    const path = join(directory, 'text.txt');
    writeFileSync(path, text);
    const input = TextInput.config({
      ...{
        files: [path],
        tokenizer: ByteTokenizer.config(),
        seqLen: 8,
        batchSize: 3,
        sampling,
        split: 'all',
      },
      isTraining: true,
    });
    const { names, batches } = await named(input, (batch) => {
      const { ids, labels, weights } = batch as unknown as LmBatch;
      return [0, 8, 16].map((at) => {
        const length = weights.data.subarray(at, at + 8).reduce((sum, weight) => sum + weight, 0);
        return [...ids.data.subarray(at, at + length), labels.data[at + length - 1]];
      });
    });
    const tokens = [...Buffer.from(text)];
    const cut = (name: string) => {
      const [, first, last] = /^tokens (\d+) to (\d+) of split 'all'$/.exec(name)!;
      return tokens.slice(Number(first), Number(last) + 1);
    };
    expect(names.map((rows) => rows!.map(cut))).toEqual(batches);
  },
);

test('packed rows of lanes: all records of a row; one row an example: its record', async () => {
  const mixtureOrTask = numbersTask({ count: 40, sizes: [2, 3, 5] });
  const packed = { featureConverter: LanguageModelFeatures.config({ pack: true }), mixtureOrTask };
  const training = seqio({ ...packed, isTraining: true, numLanes: 4, packingRows: 3 });
  const { names, batches } = await named(training, (batch) => [numbersIn([batch])]);
  const numbers = names.map((rows) =>
    rows!.flatMap((row) => row.split(' + ').map((name) => Number(/^record (\d+)$/.exec(name)![1]))),
  );
  const sorted = (all: number[]) => [...all].sort((a, b) => a - b);
  expect(numbers.map(sorted)).toEqual(batches.map(([given]) => sorted(given as number[])));
  const single = seqio({ featureConverter: LanguageModelFeatures.config(), mixtureOrTask, isTraining: true });
  const alone = await named(single, (batch) => numbersIn([batch]), 3);
  expect(alone.names).toEqual(alone.batches.map((given) => given.map((x) => `record ${x}`)));
});

test('inputs beside one another, and rows in other batches', async () => {
  const pair = MultiInput.config({
    ...{ name: 'pair', batchSize: 2, isTraining: true },
    inputs: { one: records({ batchSize: 2 }), two: records({ inputRandomSeed: 5 }) },
  });
  const { names, batches } = await named(pair, (batch) => {
    const of = (name: string) => [...(batch[name] as Record<string, { data: Float32Array }>).x!.data];
    const [one, two] = [of('one'), of('two')];
    return [0, 1].map((row) =>
      [`one ${file}:${one[row]! + 1}`, ...[0, 1].map((i) => `two ${file}:${two[2 * row + i]! + 1}`)].join(
        ', ',
      ),
    );
  });
  expect(names).toEqual(batches);
  const again = RebatchedInput.config({
    ...{ name: 'again', batchSize: 3, isTraining: true, numInfeedHosts: 2, infeedHostIndex: 1 },
    input: records(),
  });
  const rebatched = await named(again, numbersOf, 4);
  expect(rebatched.names).toEqual(
    rebatched.batches.map((numbers) => numbers.map((x) => `${file}:${(x as number) + 1}`)),
  );
});

test('an input of an unknown kind has no names', async () => {
  const { CountingInput } = await import('./ownInput.js');
  const input = build(CountingInput.config({ batchSize: 2 } as never));
  expect(await input.rowNames(input.getState())).toBe(null);
});
