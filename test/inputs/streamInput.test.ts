/** @file Batches of streams of records: sync and async functions, splits, shuffling, hosts, resuming, what is wrong. */
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, configurable } from '../../src/hparams/index.js';
import {
  ArrayFeature,
  type Batch,
  ClassFeature,
  NumberFeature,
  nextBatch,
  StreamInput,
} from '../../src/inputs/index.js';

const counted = configurable(
  async function* counted({ count }: { count: number }) {
    for (let x = 0; x < count; x++) {
      await setImmediate();
      yield { x, pair: [x, -x], y: x % 2 };
    }
  },
  { count: z.int() },
);
const listed = configurable(
  function listed({ values }: { values: readonly number[] }) {
    return values.map((x) => ({ x }));
  },
  { values: z.array(z.number()) },
);
const notRecords = configurable(function* notRecords() {
  yield { x: 1 };
  yield 2 as never;
}, {});

const x = { x: NumberFeature.config({ columns: 'x' }) };
type Fields = Partial<Parameters<typeof StreamInput.config>[0]>;
const inputOf = (fields: Fields) =>
  build(StreamInput.config({ features: x, split: 'all', batchSize: 2, ...fields }));

const lists = (batch: Batch) =>
  Object.fromEntries(Object.entries(batch).map(([name, { data }]) => [name, [...(data as Float32Array)]]));

/** The values of x of all rows that are no padding. */
async function rowsOf(input: StreamInput): Promise<number[]> {
  const rows = [];
  for (let batch = await nextBatch(input); batch; batch = await nextBatch(input)) {
    const { x, weights } = lists(batch);
    rows.push(...x!.filter((_, i) => weights![i] === 1));
  }
  return rows;
}

test('an async generator: features of each kind, and the last batch filled up with weight 0', async () => {
  const features = {
    ...x,
    pair: ArrayFeature.config({ column: 'pair', shape: [2] }),
    y: ClassFeature.config({ column: 'y', classes: 2 }),
  };
  const input = inputOf({ records: counted.partial({ count: 3 }), features });
  expect(input.batchSpecs()).toEqual({
    x: { shape: [2], dtype: 'float32' },
    pair: { shape: [2, 2], dtype: 'float32' },
    y: { shape: [2], dtype: 'int32' },
    weights: { shape: [2], dtype: 'float32' },
  });
  expect(lists(await input.getNext())).toEqual({
    x: [0, 1],
    pair: [0, -0, 1, -1],
    y: [0, 1],
    weights: [1, 1],
  });
  expect(lists(await input.peek())).toEqual({ x: [2, 0], pair: [2, -2, 0, 0], y: [0, 0], weights: [1, 0] });
  expect(lists(await input.getNext()).x).toEqual([2, 0]);
  await expect(input.getNext()).rejects.toThrow("Input 'input' has no more data.");
  await expect(input.peek()).rejects.toThrow("Input 'input' has no more data.");
  input.reset();
  expect(await rowsOf(input)).toEqual([0, 1, 2]);
  await input.close();
});

test('the splits of a stream share no record, make all of it, and are the same on several hosts', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        count: fc.integer({ min: 30, max: 80 }),
        validationFraction: fc.double({ min: 0.3, max: 0.7, noNaN: true }),
        splitSeed: fc.nat(5),
        batchSize: fc.integer({ min: 1, max: 9 }),
      }),
      async ({ count, ...fields }) => {
        const records = listed.partial({ values: Array.from({ length: count }, (_, i) => i) });
        const rows = async (split: 'train' | 'validation', hosts: number) => {
          const numbers = [];
          for (let infeedHostIndex = 0; infeedHostIndex < hosts; infeedHostIndex++) {
            const host = { numInfeedHosts: hosts, infeedHostIndex };
            numbers.push(...(await rowsOf(inputOf({ ...fields, records, split, ...host }))));
          }
          return numbers.sort((a, b) => a - b);
        };
        const [train, validation] = [await rows('train', 2), await rows('validation', 1)];
        expect(validation).toEqual(await rows('validation', 3));
        expect([...train, ...validation].sort((a, b) => a - b)).toEqual(
          Array.from({ length: count }, (_, i) => i),
        );
      },
    ),
    { numRuns: 20 },
  );
});

test('training reads every record once an epoch, shuffled through a buffer, and resumes exactly', async () => {
  const records = counted.partial({ count: 8 });
  const input = inputOf({ records, isTraining: true, shuffleBufferSize: 4 });
  const epoch = async () => {
    const rows = [];
    for (let i = 0; i < 4; i++) rows.push(...lists(await input.getNext()).x!);
    return rows;
  };
  const [first, second] = [await epoch(), await epoch()];
  for (const each of [first, second]) expect(each.toSorted()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(second).not.toEqual(first);
  // A row is drawn from the buffer of 4: no record comes more than 3 places early.
  for (const [i, row] of first.entries()) expect(row - i).toBeLessThanOrEqual(3);
  const state = input.getState();
  const third = await epoch();
  input.setState(state);
  expect(await epoch()).toEqual(third);
  const resumed = inputOf({ records, isTraining: true, shuffleBufferSize: 4, batchSize: 8 });
  resumed.setState(state);
  expect(lists(await resumed.getNext()).x).toEqual(third);
  expect(() => inputOf({ records, isTraining: true }).setState(state)).toThrow(
    "Input 'train' cannot resume from the saved state, as its data has changed since: shuffleBufferSize is 1024, was 4.",
  );
  const inOrder = inputOf({ records, isTraining: true, shuffleBufferSize: 1, batchSize: 10 });
  expect(lists(await inOrder.getNext()).x).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
});

test('what is wrong with a stream is told with the record', async () => {
  const error = (fields: Fields) =>
    inputOf(fields)
      .getNext()
      .then(
        () => 'none',
        ({ message }: Error) => message,
      );
  expect(await error({ records: listed.partial({ values: [] }) })).toBe(
    "StreamInput 'input': there are no records.",
  );
  expect(
    await error({ records: listed.partial({ values: [1, 2] }), split: 'validation', isTraining: true }),
  ).toBe("StreamInput 'train': split 'validation' of 2 records is empty.");
  expect(await error({ records: notRecords.partial() })).toBe(
    "StreamInput 'input': record 1: expected an object, { column: value, … }; got 2",
  );
  const features = { pair: ArrayFeature.config({ column: 'pair', shape: [3] }) };
  expect(await error({ records: counted.partial({ count: 1 }), features })).toBe(
    "StreamInput 'input': record 0: feature 'pair', column 'pair': expected an array of shape [3], got 2 numbers",
  );
  const call = StreamInput.config({ features: x, batchSize: 1 });
  // @ts-expect-error the config of one call, where a function is wanted
  call.records = counted.config({ count: 1 });
  expect(() => build(call)).toThrow(
    'StreamInput.records: expected a config that builds a function that gives an iterable of records, such as the partial of a generator function, got a counted config',
  );
});
