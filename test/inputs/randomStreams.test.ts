/** @file Random streams of inputs: those of two seeds, purposes, epochs, records, lanes or stages share no number. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, configurable } from '../../src/hparams/index.js';
import type { ImageSet } from '../../src/inputs/images/imageSources.js';
import type { RawImage } from '../../src/inputs/images/rawImage.js';
import {
  AppendEos,
  BaseAugmentation,
  BaseImageSource,
  type BaseInput,
  BaseMixing,
  BasePreprocessor,
  type Batch,
  type Example,
  ImageInput,
  LanguageModelFeatures,
  Mixture,
  NumberFeature,
  type PreprocessContext,
  RecordInput,
  StreamInput,
  SyntheticLmInput,
  TextInput,
  Tokenize,
} from '../../src/inputs/index.js';
import { PURPOSES } from '../../src/inputs/random.js';
import type { ExampleDraws } from '../../src/inputs/seqio/exampleDraws.js';
import { TaskExamples } from '../../src/inputs/seqio/taskExamples.js';
import { splitOf, streamSplit } from '../../src/inputs/splits.js';
import { corpusDirectory } from './corpus.js';
import { numbersIn, numbersTask, seqio } from './seqio/corpora.js';

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const dataOf = (batch: Batch, name: string): number[] => [...(batch[name] as { data: Float32Array }).data];

const counted = configurable(
  function* counted({ count }: { count: number }) {
    for (let x = 0; x < count; x++) yield { x };
  },
  { count: z.int() },
);
const features = { x: NumberFeature.config({ columns: 'x' }) };

/** The next batches of an input, each as a text. */
async function textsOf(input: BaseInput, count: number, of: (batch: Batch) => unknown): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) texts.push(String(of(await input.getNext())));
  return texts;
}

const COUNT = 3;
/** Black images of 4 × 2 pixels, three of them. */
class Black extends BaseImageSource.with({}) {
  override read(): ImageSet {
    const pixels = () => ({ width: 4, height: 2, channels: 1 as const, data: new Uint8Array(8) });
    return { images: upTo(COUNT).map(() => ({ label: 0, pixels })), files: [], digest: '' };
  }
}

const seen: string[] = [];
const DRAWS = 5;
const note = (draws: ExampleDraws): void =>
  void seen.push(...upTo(DRAWS).map(() => `${draws.below(2 ** 40)}`));

/** Notes its draws. */
class NotingAugmentation extends BaseAugmentation.with({}) {
  override apply(image: RawImage, draws: ExampleDraws): RawImage {
    note(draws);
    return image;
  }
}
class NotingMixing extends BaseMixing.with({}) {
  override mix(_pixels: Float32Array, _other: Float32Array, draws: ExampleDraws): number {
    note(draws);
    return 1;
  }
}
/** Notes its draws, and makes two examples of each. */
class NotingPreprocessor extends BasePreprocessor.with({}) {
  override *apply([example]: readonly Example[], { draws }: PreprocessContext): Iterable<Example> {
    note(draws);
    yield example!;
    yield example!;
  }
}

/** Draws noted while batches are read. */
async function notedIn(input: BaseInput, batches: number): Promise<string[]> {
  seen.length = 0;
  for (let i = 0; i < batches; i++) await input.getNext();
  return [...seen];
}

/** Tasks of numbers from 0 and from 100 on. */
const both = (count: number, preprocessors?: Parameters<typeof numbersTask>[1]) =>
  Mixture.config({
    parts: {
      low: numbersTask({ count }, preprocessors),
      high: numbersTask({ count, from: 100 }, preprocessors),
    },
    rates: { low: 1, high: 1 },
  });
const lanes = { isTraining: true, batchSize: 8, numLanes: 2, taskFeatureLengths: { targets: 4 } };
const packed = (packing: 'best fit' | 'next fit') => ({
  ...{ ...lanes, packingRows: 8, taskFeatureLengths: { targets: 2 } },
  mixtureOrTask: numbersTask({ count: 100 }),
  featureConverter: LanguageModelFeatures.config({ pack: true, packing }),
});

const corpus = join(corpusDirectory({ 'one.txt': Uint8Array.from({ length: 250 }, (_, i) => i) }), '*.txt');
const windows = (sampling: 'random' | 'permuted') => ({
  ...{ files: [corpus], split: 'all' as const, seqLen: 20, isTraining: true, sampling },
});

/** The first id of each row, which is the offset of its window. */
const firstIds = (batch: Batch): number[] => dataOf(batch, 'ids').filter((_, i) => i % 20 === 0);

/** The random numbers of a seed by kind: each text is of a stream of its own. */
const STREAMS: Readonly<Record<string, (inputRandomSeed: number) => Promise<string[]>>> = {
  'orders of rows, by epoch': (inputRandomSeed) => {
    const source = counted.config({ count: 20 });
    const fields = { source, features, split: 'all' as const, isTraining: true };
    return textsOf(build(RecordInput.config({ ...fields, batchSize: 20, inputRandomSeed })), 4, (batch) =>
      dataOf(batch, 'x'),
    );
  },
  'orders of a stream, by epoch': (inputRandomSeed) => {
    const records = counted.partial({ count: 20 });
    const fields = { records, features, split: 'all' as const, isTraining: true };
    return textsOf(build(StreamInput.config({ ...fields, batchSize: 20, inputRandomSeed })), 4, (batch) =>
      dataOf(batch, 'x'),
    );
  },
  'orders of windows, by epoch': (inputRandomSeed) =>
    textsOf(
      build(TextInput.config({ ...windows('permuted'), batchSize: 11, inputRandomSeed })),
      4,
      // The numbers of the windows, whatever their phase.
      (batch) => firstIds(batch).map((id) => Math.floor(id / 20)),
    ),
  'windows at random offsets, by batch': (inputRandomSeed) =>
    textsOf(build(TextInput.config({ ...windows('random'), batchSize: 6, inputRandomSeed })), 9, firstIds),
  'phases of windows': async (inputRandomSeed) => {
    const input = build(TextInput.config({ ...windows('permuted'), batchSize: 11, inputRandomSeed }));
    const phases = await textsOf(input, 6, (batch) => firstIds(batch)[0]! % 20);
    expect(new Set(phases).size).toBeGreaterThan(3);
    return [String(phases)];
  },
  'synthetic rows': (inputRandomSeed) => {
    const fields = { seqLen: 8, vocabSize: 99, batchSize: 1, isTraining: true };
    return textsOf(build(SyntheticLmInput.config({ ...fields, inputRandomSeed })), 9, (batch) =>
      dataOf(batch, 'ids'),
    );
  },
  'augmentations and mixtures, by epoch, image and place': async (inputRandomSeed) => {
    const input = ImageInput.config({
      ...{ source: Black.config(), height: 2, width: 4, channels: 1, numClasses: 2, split: 'all' },
      ...{ isTraining: true, batchSize: COUNT, inputRandomSeed },
      augmentations: [NotingAugmentation.config(), NotingAugmentation.config()],
      mixings: [NotingMixing.config()],
    });
    const built = build(input);
    const epochs: string[][] = [];
    while (epochs.length < 3) epochs.push(await notedIn(built, 1));
    // Of each image: two augmentations, those of its partner, which are that image's own, and the mixture.
    const distinct = epochs.flatMap((found) => [...new Set(found)]);
    expect([epochs.flat().length, distinct.length]).toEqual([3 * COUNT * 5 * DRAWS, 3 * COUNT * 3 * DRAWS]);
    return distinct;
  },
  'preprocessors, by task, epoch, record, stage and part': (inputRandomSeed) => {
    const noting = [NotingPreprocessor.config(), NotingPreprocessor.config()];
    const stages = [...noting, Tokenize.config(), AppendEos.config()];
    return notedIn(build(seqio({ ...lanes, mixtureOrTask: both(10, stages), inputRandomSeed })), 20);
  },
  'orders of records, by task and epoch': async (seed) => {
    const task = build(numbersTask({ count: 20 }));
    const order = { seed, shuffles: true, repeats: true };
    return ['one', 'two'].flatMap((name) => {
      const examples = new TaskExamples({ name, task, share: 1 }, 'all', order);
      return upTo(3).map((epoch) => String(upTo(20).map((q) => examples.at(20 * epoch + q).example.targets)));
    });
  },
  'choices of tasks, by lane': async (inputRandomSeed) => {
    const input = build(seqio({ ...lanes, mixtureOrTask: both(100), inputRandomSeed }));
    const batches: Batch[] = [];
    for (let i = 0; i < 8; i++) batches.push(await input.getNext());
    return [0, 1].map((lane) =>
      batches
        .flatMap((batch, i) => (i % 2 === lane ? numbersIn([batch]).map((n) => Math.floor(n / 100)) : []))
        .join(''),
    );
  },
  'orders of packed rows, by lane and group': async (inputRandomSeed) => {
    const [best, next] = [
      build(seqio({ ...packed('best fit'), inputRandomSeed })),
      build(seqio({ ...packed('next fit'), inputRandomSeed })),
    ];
    const orders: string[] = [];
    for (let i = 0; i < 8; i++) {
      const [shuffled, plain] = [numbersIn([await best.getNext()]), numbersIn([await next.getNext()])];
      orders.push(String(shuffled.map((n) => plain.indexOf(n))));
    }
    return orders;
  },
  'items held out, of numbered ones and of a stream': async (splitSeed) => {
    const fields = { split: 'validation' as const, validationFraction: 0.3, splitSeed };
    const { numItems, item } = splitOf(90, fields, 'items');
    return [String(upTo(numItems).map(item)), String(upTo(90).filter(streamSplit(fields)))];
  },
};

test.each(Object.entries(STREAMS))('%s', async (_, drawn) => {
  const all: string[] = [];
  for (const seed of [0, 1, 2 ** 40]) {
    const found = await drawn(seed);
    expect(await drawn(seed)).toEqual(found);
    all.push(...found);
  }
  const counts = new Map<string, number>();
  for (const text of all) counts.set(text, (counts.get(text) ?? 0) + 1);
  expect([...counts].filter(([, count]) => count > 1)).toEqual([]);
});

test('each purpose has room for the epochs before the next', () => {
  const values = Object.values(PURPOSES).sort((a, b) => a - b);
  const gaps = values.slice(1).map((value, i) => value - values[i]!);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(2 ** 40);
  expect(values.at(-1)! + 2 ** 40).toBeLessThan(2 ** 53);
});
