/** @file Promises of all inputs: each example once an epoch over all hosts, hosts that stop together, exact resumption. */
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, type Config, configurable } from '../../src/hparams/index.js';
import type { ImageSet } from '../../src/inputs/images/imageSources.js';
import {
  BaseImageSource,
  type BaseInput,
  type Batch,
  ImageInput,
  type InputState,
  type LmBatch,
  MultiInput,
  NumberFeature,
  nextBatch,
  RebatchedInput,
  RecordInput,
  StreamInput,
  TextInput,
} from '../../src/inputs/index.js';
import { splitOf, streamSplit } from '../../src/inputs/splits.js';
import { runs } from '../faults/campaign.js';
import { corpusDirectory } from './corpus.js';
import { numbersIn, numbersTask, rising, seqio } from './seqio/corpora.js';

/** What a host reads. */
interface Share {
  readonly batchSize: number;
  readonly numInfeedHosts: number;
  readonly infeedHostIndex: number;
  readonly isTraining: boolean;
}

/** Numbered examples in the batches of an input. */
interface Sample {
  config(share: Share): Config<BaseInput>;
  /** Numbers of the examples of a batch, padding aside, in sequences that are read side by side. */
  examplesIn(batch: Batch): number[][];
  /** The numbers of an epoch of each sequence, in their order. */
  readonly epochs: readonly (readonly number[])[];
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const dataOf = (batch: Batch, name: string): number[] => [...(batch[name] as { data: Float32Array }).data];

/** Values of the rows with a weight. */
const weighted = (batch: Batch, name: string): number[] => {
  const weights = dataOf(batch, 'weights');
  return dataOf(batch, name).filter((_, b) => weights[b] === 1);
};

const counted = configurable(
  function* counted({ count }: { count: number }) {
    for (let x = 0; x < count; x++) yield { x };
  },
  { count: z.int() },
);

const features = { x: NumberFeature.config({ columns: 'x' }) };

/** Grey images of one pixel each, whose classes are their numbers. */
class Pixels extends BaseImageSource.with({ count: z.int() }) {
  override read(): ImageSet {
    const pixels = () => ({ width: 1, height: 1, channels: 1 as const, data: Uint8Array.of(0) });
    return { images: upTo(this.hp.count).map((label) => ({ label, pixels })), files: [], digest: '' };
  }
}

const count = fc.integer({ min: 1, max: 30 });
const inputRandomSeed = fc.nat(99);

/** Splits of items, of which none is empty. */
const split = fc
  .record({
    split: fc.constantFrom('train' as const, 'validation' as const, 'all' as const),
    validationFraction: fc.double({ min: 0.2, max: 0.8, noNaN: true }),
    splitSeed: fc.nat(9),
    count,
  })
  .map(({ count, split, ...rest }) => ({
    count,
    fields: { split: count < 4 ? ('all' as const) : split, ...rest },
  }));

const itemsOf = (count: number, fields: Parameters<typeof splitOf>[1]): number[] => {
  const { numItems, item } = splitOf(count, fields, 'items');
  return upTo(numItems).map(item);
};

const records = fc.record({ split, inputRandomSeed }).map(
  ({ split: { count, fields }, inputRandomSeed }): Sample => ({
    config: (share) =>
      RecordInput.config({
        source: counted.config({ count }),
        features,
        inputRandomSeed,
        ...fields,
        ...share,
      }),
    examplesIn: (batch) => [weighted(batch, 'x')],
    epochs: [itemsOf(count, fields)],
  }),
);

const images = fc.record({ split, inputRandomSeed }).map(
  ({ split: { count, fields }, inputRandomSeed }): Sample => ({
    config: (share) =>
      ImageInput.config({
        source: Pixels.config({ count }),
        ...{ height: 1, width: 1, channels: 1, inputRandomSeed, ...fields, ...share },
      }),
    examplesIn: (batch) => [weighted(batch, 'labels')],
    epochs: [itemsOf(count, fields)],
  }),
);

const streams = fc
  .record({ split, inputRandomSeed, shuffleBufferSize: fc.integer({ min: 1, max: 40 }) })
  .map(({ split: { count, fields }, ...values }) => {
    const isInSplit = streamSplit(fields);
    const sample: Sample = {
      config: (share) =>
        StreamInput.config({ records: counted.partial({ count }), features, ...values, ...fields, ...share }),
      examplesIn: (batch) => [weighted(batch, 'x')],
      epochs: [upTo(count).filter(isInSplit)],
    };
    return sample;
  })
  .filter(({ epochs: [epoch] }) => epoch!.length > 0);

/** Rows of packed documents, each as the number that its first label has in the corpus. */
const texts = fc
  .record({
    lengths: fc.array(fc.integer({ min: 2, max: 9 }), { minLength: 1, maxLength: 8 }),
    seqLen: fc.integer({ min: 2, max: 8 }),
    inputRandomSeed,
  })
  .map(({ lengths, ...values }): Sample => {
    // No byte comes twice.
    let next = 33;
    const files = lengths.map((length, f) => [`${f}.txt`, Uint8Array.from({ length }, () => next++)]);
    const directory = corpusDirectory(Object.fromEntries(files));
    const config = (share: Share) =>
      TextInput.config({
        files: [join(directory, '*.txt')],
        packed: true,
        split: 'all',
        ...values,
        ...share,
      });
    const first = (batch: Batch): number[] => {
      const { labels, weights } = batch as LmBatch;
      const [rows, length] = labels.shape as [number, number];
      return upTo(rows)
        .filter((row) => weights.data[row * length] === 1)
        .map((row) => labels.data[row * length]!);
    };
    return { config, examplesIn: (batch) => [first(batch)], epochs: [] };
  });

/** An input and another that has twice as many rows of it in each row. */
const pairs = fc.record({ count, inputRandomSeed }).map(
  ({ count, inputRandomSeed }): Sample => ({
    config: ({ isTraining, ...share }) => {
      const of = (times: number, seed: number) =>
        RecordInput.config({
          source: counted.config({ count: times * count }),
          ...{ features, split: 'all', batchSize: times * share.batchSize, inputRandomSeed: seed },
        });
      const inputs = { one: of(1, inputRandomSeed), two: of(2, inputRandomSeed + 1) };
      return MultiInput.config({ inputs, evalLoopNumBatches: isTraining ? null : 99, isTraining, ...share });
    },
    examplesIn: ({ one, two }) => [weighted(one as Batch, 'x'), weighted(two as Batch, 'x')],
    epochs: [upTo(count), upTo(2 * count)],
  }),
);

const rebatched = fc.record({ inner: fc.oneof(records, streams), size: fc.integer({ min: 1, max: 9 }) }).map(
  ({ inner, size }): Sample => ({
    ...inner,
    config: (share) => {
      const one = { numInfeedHosts: 1, infeedHostIndex: 0, isTraining: false };
      return RebatchedInput.config({ input: inner.config({ ...one, batchSize: size }), ...share });
    },
  }),
);

/** A task whose examples each give one row. */
const tasks = fc.record({ count, inputRandomSeed }).map(
  ({ count, inputRandomSeed }): Sample => ({
    config: (share) =>
      seqio({ mixtureOrTask: numbersTask({ count }), inputRandomSeed, numLanes: 8, ...share }),
    examplesIn: (batch) => [numbersIn([batch])],
    epochs: [upTo(count)],
  }),
);

const samples: Record<string, fc.Arbitrary<Sample>> = {
  ...{ RecordInput: records, ImageInput: images, StreamInput: streams, TextInput: texts },
  ...{ MultiInput: pairs, RebatchedInput: rebatched, SeqioInput: tasks },
};

const hosts = fc.record({
  batchSize: fc.integer({ min: 1, max: 7 }),
  numInfeedHosts: fc.integer({ min: 1, max: 8 }),
});

const inputsOf = (
  { config }: Sample,
  { batchSize, numInfeedHosts }: { batchSize: number; numInfeedHosts: number },
  isTraining: boolean,
): BaseInput[] =>
  upTo(numInfeedHosts).map((infeedHostIndex) =>
    build(config({ batchSize, numInfeedHosts, infeedHostIndex, isTraining })),
  );

/** The next batches of an input, at most `most`. */
async function batchesOf(input: BaseInput, most = Number.POSITIVE_INFINITY): Promise<Batch[]> {
  const batches: Batch[] = [];
  while (batches.length < most) {
    const batch = await nextBatch(input);
    if (batch === undefined) break;
    batches.push(batch);
  }
  return batches;
}

/** The examples of all hosts in the order of the global batches. */
async function readBy(sample: Sample, inputs: readonly BaseInput[], steps?: number): Promise<number[][]> {
  const read = await Promise.all(inputs.map((input) => batchesOf(input, steps)));
  // All hosts end after the same number of batches.
  expect(new Set(read.map(({ length }) => length)).size).toBe(1);
  const inOrder = upTo(read[0]!.length).flatMap((t) => read.map((batches) => sample.examplesIn(batches[t]!)));
  const width = inOrder[0]?.length ?? 1;
  return upTo(width).map((s) => inOrder.flatMap((sequences) => sequences[s]!));
}

/** The epochs of a sample; rows of texts are what one host reads of them. */
async function epochsOf(sample: Sample): Promise<readonly (readonly number[])[]> {
  if (sample.epochs.length > 0) return sample.epochs;
  return readBy(sample, inputsOf(sample, { batchSize: 3, numInfeedHosts: 1 }, false));
}

const JSON_OF = (state: InputState): InputState => JSON.parse(JSON.stringify(state));

for (const [name, sample] of Object.entries(samples)) {
  test(`${name}: an evaluation reads its data once, in order, and all hosts stop together`, async () => {
    const property = fc.asyncProperty(sample, hosts, async (sample, share) => {
      const inputs = inputsOf(sample, share, false);
      const epochs = await epochsOf(sample);
      expect(await readBy(sample, inputs)).toEqual(epochs);
      for (const input of inputs) input.reset();
      expect(await readBy(sample, inputs)).toEqual(epochs);
    });
    await fc.assert(property, { numRuns: runs(10, 4) });
  });

  test(`${name}: training reads each example once an epoch, with other hosts and batches after a restart too`, async () => {
    const property = fc.asyncProperty(
      sample,
      hosts,
      hosts,
      fc.nat(4),
      async (sample, before, after, steps) => {
        const epochs = await epochsOf(sample);
        const first = inputsOf(sample, before, true);
        const read = await readBy(sample, first, steps);
        const state = JSON_OF(first[0]!.joinStates(first.map((input) => input.getState())));
        const second = inputsOf(sample, after, true);
        for (const input of second) input.setState(state);
        const rest = Math.ceil((2 * epochs[0]!.length) / (after.batchSize * after.numInfeedHosts));
        const more = await readBy(sample, second, rest);
        for (const [s, epoch] of epochs.entries()) {
          const all = [...(read[s] ?? []), ...more[s]!];
          expect(rising(all.slice(0, epoch.length))).toEqual(rising(epoch));
          expect(rising(all.slice(epoch.length, 2 * epoch.length))).toEqual(rising(epoch));
        }
      },
    );
    await fc.assert(property, { numRuns: runs(10, 4) });
  });

  test(`${name}: states as JSON lead back and forth to the batches behind them, in inputs that are new or were used`, async () => {
    const property = fc.asyncProperty(
      ...([
        sample,
        hosts,
        fc.array(fc.nat(6), { minLength: 1, maxLength: 4 }),
        fc.nat(),
        fc.boolean(),
      ] as const),
      async (sample, share, walk, host, isTraining) => {
        const open = () => inputsOf(sample, share, isTraining)[host % share.numInfeedHosts]!;
        const used = open();
        const states = [JSON_OF(used.getState())];
        const batches: (Batch | undefined)[] = [];
        while (batches.length < 7 && (batches.length === 0 || batches.at(-1) !== undefined)) {
          const peeked = await used.peek().catch(() => undefined);
          expect(JSON_OF(used.getState())).toEqual(states.at(-1));
          batches.push(await nextBatch(used));
          expect(batches.at(-1)).toEqual(peeked);
          states.push(JSON_OF(used.getState()));
        }
        for (const input of [open(), used]) {
          for (const [step, at] of walk.entries()) {
            const t = at % batches.length;
            if (step % 2 === 1) await input.peek().catch(() => undefined);
            if (t === 0 && step % 2 === 1) input.reset();
            else input.setState(states[t]!);
            expect(JSON_OF(input.getState())).toEqual(states[t]);
            for (const i of [t, t + 1].filter((i) => i < batches.length))
              expect(await nextBatch(input)).toEqual(batches[i]);
          }
        }
      },
    );
    await fc.assert(property, { numRuns: runs(12, 5) });
  });
}
