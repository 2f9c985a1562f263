/** @file Promises of SeqioInput: each example once over all hosts, hosts that stop together, exact resumption. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  ByteTokenizer,
  Feature,
  FilterByLength,
  type IdRows,
  type InputState,
  LanguageModelFeatures,
  type LmBatch,
  Mixture,
  PretrainedTokenizer,
  Rekey,
  type SeqioInput,
  SplitTokens,
  Task,
  TextFileSource,
  Tokenize,
} from '../../../src/inputs/index.js';
import { runs } from '../../faults/campaign.js';
import { batchesOf, numbersIn, numbersTask, rising, seqio } from './corpora.js';

const packed = (packing: 'best fit' | 'next fit' = 'best fit') =>
  LanguageModelFeatures.config({ pack: true, packing });

/** Data of one or two tasks, packed or not. */
const data = fc
  .record({
    counts: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 2 }),
    sizes: fc.array(fc.integer({ min: 1, max: 10 }), { minLength: 1, maxLength: 5 }),
    pack: fc.constantFrom(null, 'best fit' as const, 'next fit' as const),
    batchSize: fc.integer({ min: 1, max: 5 }),
    seed: fc.integer({ min: 0, max: 99 }),
    packingRows: fc.integer({ min: 1, max: 8 }),
    rate: fc.integer({ min: 1, max: 4 }),
  })
  .map(({ counts, sizes, pack, rate, seed, ...values }) => {
    const tasks = counts.map((count, t) => numbersTask({ count, from: 100 * t, sizes }));
    const [first, second] = tasks;
    const mixtureOrTask =
      second === undefined
        ? first!
        : Mixture.config({ parts: { a: first!, b: second }, rates: { a: rate, b: 1 } });
    const featureConverter = pack === null ? LanguageModelFeatures.config() : packed(pack);
    const numbers = counts.flatMap((count, t) => Array.from({ length: count }, (_, i) => 100 * t + i));
    return { numbers, values: { mixtureOrTask, featureConverter, inputRandomSeed: seed, ...values } };
  });

const hostsOf = (values: Parameters<typeof seqio>[0], numInfeedHosts: number): SeqioInput[] =>
  Array.from({ length: numInfeedHosts }, (_, infeedHostIndex) =>
    build(seqio({ ...values, numInfeedHosts, infeedHostIndex })),
  );

const numHosts = fc.integer({ min: 1, max: 8 });

test('data that ends: hosts stop together, and together give each example once', async () => {
  const property = fc.asyncProperty(
    data,
    numHosts,
    fc.boolean(),
    async ({ numbers, values }, hosts, isTraining) => {
      const given = await Promise.all(
        hostsOf({ ...values, isTraining, repeat: false }, hosts).map((host) => batchesOf(host)),
      );
      expect(new Set(given.map(({ length }) => length)).size).toBe(1);
      expect(rising(numbersIn(given.flat()))).toEqual(numbers);
    },
  );
  await fc.assert(property, { numRuns: runs(30, 8) });
});

test('training: lane l of L reads the examples l, l + L, … of each task, whatever the hosts', async () => {
  const property = fc.asyncProperty(data, numHosts, async ({ numbers, values }, hosts) => {
    const training = { ...values, isTraining: true, shuffle: false, numLanes: 8 };
    const inputs = hostsOf(training, hosts);
    const given = counted(numbersIn((await Promise.all(inputs.map((input) => batchesOf(input, 6)))).flat()));
    const { lanes } = inputs[0]!.joinStates(inputs.map((input) => input.getState()));
    const tasks = [numbers.filter((x) => x < 100), numbers.filter((x) => x >= 100)];
    // All that stands before the groups that the lanes are in has come.
    const before = ((lanes ?? []) as number[][]).flatMap(([, , ...drawn], l) =>
      drawn.flatMap((count, t) =>
        Array.from({ length: count }, (_, i) => tasks[t]![(8 * i + l) % tasks[t]!.length]!),
      ),
    );
    for (const [number, count] of Object.entries(counted(before)))
      expect(given[Number(number)]).toBeGreaterThanOrEqual(count);
    expect(Object.keys(given).filter((number) => !numbers.includes(Number(number)))).toEqual([]);
  });
  await fc.assert(property, { numRuns: runs(15, 5) });
});

test('after any batch a run goes on exactly, from the state as JSON', async () => {
  const property = fc.asyncProperty(
    data,
    fc.nat(12),
    fc.integer({ min: 1, max: 3 }),
    fc.boolean(),
    async ({ values }, taken, hosts, isTraining) => {
      for (const input of hostsOf({ ...values, isTraining }, hosts)) {
        await batchesOf(input, taken);
        const state = JSON.parse(JSON.stringify(input.getState())) as InputState;
        const peeked = await input.peek().catch(() => undefined);
        const rest = await batchesOf(input, 5);
        expect(rest[0]).toEqual(peeked);
        const other = build(seqio({ ...values, isTraining, ...hostValues(input) }));
        other.setState(state);
        expect(await batchesOf(other, 5)).toEqual(rest);
        input.reset();
        input.setState(state);
        expect(await batchesOf(input, 5)).toEqual(rest);
      }
    },
  );
  await fc.assert(property, { numRuns: runs(15, 5) });
});

const hostValues = ({ hp }: SeqioInput) => ({
  numInfeedHosts: hp.numInfeedHosts,
  infeedHostIndex: hp.infeedHostIndex,
});

/** How often each number comes. */
function counted(numbers: readonly number[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const number of numbers) counts[number] = (counts[number] ?? 0) + 1;
  return counts;
}

test('readers that each make every n-th batch give the batches and states of one', async () => {
  const property = fc.asyncProperty(
    data,
    fc.integer({ min: 1, max: 3 }),
    fc.integer({ min: 1, max: 6 }),
    fc.nat(5),
    async ({ values }, hosts, most, taken) => {
      const training = { ...values, isTraining: true };
      for (const [h, plain] of hostsOf(training, hosts).entries()) {
        await batchesOf(plain, taken);
        const count = plain.numReaders(most);
        expect(count).toBeGreaterThanOrEqual(1);
        expect(count).toBeLessThanOrEqual(most);
        let state = plain.getState();
        const readers = Array.from({ length: count }, () => hostsOf(training, hosts)[h]!);
        for (const [first, reader] of readers.entries()) {
          reader.setState(JSON.parse(JSON.stringify(state)));
          await reader.skip(first);
        }
        for (let t = 0; t < 12; t++) {
          const reader = readers[t % count]!;
          expect(await reader.getNext()).toEqual(await plain.getNext());
          state = plain.joinStates([state, reader.getState()]);
          expect(state).toEqual(plain.getState());
          await reader.skip(count - 1);
        }
      }
    },
  );
  await fc.assert(property, { numRuns: runs(15, 5) });
});

test('another number of hosts, another batch size: nothing is repeated and nothing left out', async () => {
  const property = fc.asyncProperty(
    data,
    numHosts,
    numHosts,
    fc.integer({ min: 1, max: 5 }),
    fc.integer({ min: 0, max: 6 }),
    async ({ values }, before, after, batchSize, taken) => {
      const training = { ...values, isTraining: true, numLanes: 8 };
      const first = hostsOf(training, before);
      const given = (await Promise.all(first.map((input) => batchesOf(input, taken)))).flat();
      const state = first[0]!.joinStates(first.map((input) => input.getState()));
      const second = hostsOf({ ...training, batchSize }, after);
      for (const input of second) input.setState(state);
      given.push(...(await Promise.all(second.map((input) => batchesOf(input, 4)))).flat());
      // One lane after the other from the beginning, as far as the joined states say.
      const last = second[0]!.joinStates(second.map((input) => input.getState()));
      expect(counted(numbersIn(given))).toEqual(
        counted(await upTo(seqio({ ...training, batchSize: 1 }), last)),
      );
    },
  );
  await fc.assert(property, { numRuns: runs(10, 4) });
});

/** The numbers that one host reads, row by row, until each lane is where `state` says, or all rows are read. */
async function upTo(config: Config<SeqioInput>, state: InputState): Promise<number[]> {
  const numbers: number[] = [];
  if (typeof state.position === 'number') return numbersIn(await batchesOf(build(config), state.position));
  for (const [l, end] of (state.lanes as number[][]).entries()) {
    const input = build(config);
    const start = input.getState();
    const isThere = () => String((input.getState().lanes as number[][])[l]) === String(end);
    // Of batch number l, one host reads lane l; by itself again and again where `batches` stays there.
    while (!isThere()) {
      const { lanes } = input.getState();
      input.setState({ ...start, batches: l, lanes: lanes! });
      numbers.push(...numbersIn(await batchesOf(input, 1)));
    }
  }
  return numbers;
}

test('an evaluation numbers its examples: over all hosts each once, and -1 for padding', async () => {
  const values = { mixtureOrTask: numbersTask({ count: 11 }), batchSize: 2 };
  const hosts = hostsOf(values, 3);
  const batches = (await Promise.all(hosts.map((host) => batchesOf(host)))).flat();
  const ids = batches.flatMap(({ exampleIds }) => [...(exampleIds as { data: Int32Array }).data]);
  expect(rising(ids)).toEqual([-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  // Shuffling is for training.
  expect(numbersIn(await batchesOf(build(seqio({ ...values, shuffle: true }))))).toEqual(
    rising(ids).slice(1),
  );
  const training = await build(seqio({ ...values, isTraining: true })).getNext();
  expect(Object.keys(training)).toEqual(['ids', 'labels', 'paddings', 'weights', 'segmentIds', 'segmentPos']);
});

test('evalNumExamples and evalAutoPad say how much an evaluation reads', async () => {
  const task = { mixtureOrTask: numbersTask({ count: 11 }) };
  const read = async (values: Parameters<typeof seqio>[0]) =>
    numbersIn(await batchesOf(build(seqio({ ...task, ...values }))));
  expect(await read({ evalNumExamples: 3 })).toEqual([0, 1, 2]);
  expect(await read({ evalNumExamples: 3, evalAutoPad: false })).toEqual([0, 1]);
  const packedRows = { featureConverter: packed('next fit'), batchSize: 2 };
  // Examples of two tokens: four to a row.
  expect(await read({ ...packedRows, evalNumExamples: 9 })).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  expect(await read({ ...packedRows, evalNumExamples: 9, evalAutoPad: false })).toEqual([
    0, 1, 2, 3, 4, 5, 6, 7,
  ]);
});

test('a state means nothing for other data, rates or lengths; combinations without an end are refused', async () => {
  const parts = { a: numbersTask({ count: 5 }), b: numbersTask({ count: 9, from: 100 }) };
  const mixed = (rate: number, more: Parameters<typeof seqio>[0] = {}) =>
    seqio({ mixtureOrTask: Mixture.config({ parts, rates: { a: rate, b: 1 } }), isTraining: true, ...more });
  const state = build(mixed(1)).getState();
  for (const more of [{ taskFeatureLengths: { targets: 9 } }, { featureConverter: packed() }])
    expect(() => build(mixed(1, more)).setState(state)).toThrow(/config is \w+, was \w+\./);
  expect(() => build(mixed(2)).setState(state)).toThrow(
    /^Input 'train' cannot resume from the saved state, as its data has changed since: config is \w+, was \w+\./,
  );
  expect(() => build(mixed(1)).setState({ ...state, lanes: [[0]] })).toThrow(
    'Input \'train\': expected a state with a number of batches and 16 lanes of 4 numbers, got {"batches":0,"lanes":[[0]]}.',
  );
  expect(() => seqioBuilt({ repeat: true })).toThrow(
    'must be a number of batches if repeat is true: the data is endless',
  );
  expect(() => seqioBuilt({ isTraining: true, evalNumExamples: 3 })).toThrow(
    'limits finite data, and this data repeats',
  );
  const crowd = { numInfeedHosts: 3, numLanes: 2, isTraining: true, featureConverter: packed() };
  expect(() => seqioBuilt(crowd)).toThrow("Input 'train': numLanes is 2, and 3 hosts need one each.");
});

const seqioBuilt = (values: Parameters<typeof seqio>[0]) =>
  build(seqio({ mixtureOrTask: numbersTask({ count: 5 }), ...values }));

test('a thread that was told what a tokenizer has read goes on from the state of one that was not', async () => {
  const file = 'experiments/typescript.tokenizer.json';
  const config = (contents: string | null) => {
    const tokenizer = PretrainedTokenizer.config({ file, contents, eosToken: '<eos>' });
    const task = numbersTask({ count: 9 });
    return seqio({
      mixtureOrTask: Object.assign(task, { features: { targets: Feature.config({ tokenizer }) } }),
    });
  };
  const first = build(config(null));
  const batch = await first.getNext();
  const second = build(config(readFileSync(file, 'utf8')));
  second.setState(first.getState());
  expect(await second.getNext()).toEqual(await first.getNext());
  expect(first.idsToStrings(batch.labels as IdRows, [2, 1])).toEqual(['0<eos>', '1']);
});

test('rates decide how often a task comes; a task in two places has one order', async () => {
  const [a, b, c] = [0, 100, 200].map((from) => numbersTask({ count: 50, from }));
  const inner = Mixture.config({ parts: { b: b!, c: c! }, rates: { b: 1, c: 3 } });
  const mixtureOrTask = Mixture.config({ parts: { a: a!, inner, b: b! }, rates: { a: 2, inner: 4, b: 1 } });
  const input = build(seqio({ mixtureOrTask, isTraining: true, batchSize: 64 }));
  const numbers = numbersIn(await batchesOf(input, 64));
  const share = (from: number) => numbers.filter((x) => x >= from && x < from + 100).length / numbers.length;
  expect([share(0), share(100), share(200)].map((x) => x.toFixed(1))).toEqual(['0.3', '0.3', '0.4']);
  const shares = (values: object) =>
    build(
      Mixture.config({ parts: { a: numbersTask({ count: 10 }), b: numbersTask({ count: 90 }) }, ...values }),
    )
      .weightedTasks('all')
      .map(({ name, share }) => [name, Number(share.toFixed(3))]);
  expect(shares({})).toEqual([
    ['a', 0.1],
    ['b', 0.9],
  ]);
  expect(shares({ maximum: 40 })).toEqual([
    ['a', 0.2],
    ['b', 0.8],
  ]);
  expect(shares({ temperature: 2 })).toEqual([
    ['a', 0.25],
    ['b', 0.75],
  ]);
});

test('best fit fills the rows of the TypeScript declarations to 98 % and more', async () => {
  const mixtureOrTask = Task.config({
    source: TextFileSource.config({ files: ['pkg:typescript/lib/lib.e*.d.ts'] }),
    preprocessors: [Rekey.config({ keyMap: { targets: 'text' } }), Tokenize.config(), SplitTokens.config()],
    features: { targets: Feature.config({ tokenizer: ByteTokenizer.config(), addEos: false }) },
  });
  const taskFeatureLengths = { targets: 512 };
  const given = { mixtureOrTask, taskFeatureLengths, featureConverter: packed(), batchSize: 32 };
  const batches = await batchesOf(build(seqio({ ...given, isTraining: true })), 40);
  const paddings = batches.flatMap((batch) => [...(batch as LmBatch).paddings.data]);
  expect(paddings.filter((padding) => padding === 0).length / paddings.length).toBeGreaterThan(0.98);
});

test('examples that all fail a filter are an error in training, not an endless search', async () => {
  const nothing = [Tokenize.config(), FilterByLength.config({ min: 99 })];
  const values = { mixtureOrTask: numbersTask({ count: 4 }, nothing), isTraining: true };
  await expect(build(seqio(values)).getNext()).rejects.toThrow(
    "SeqioInput 'train': none of 4 records gives an example: the preprocessors keep nothing.",
  );
});
