/** @file Batches of records in memory, of files and of code: features, splits, weights, and the place of what is wrong. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, type Config, configurable } from '../../../src/hparams/index.js';
import {
  ArrayFeature,
  type Batch,
  ClassFeature,
  CsvSource,
  type DataRecord,
  IterableSource,
  JsonLinesSource,
  NumberFeature,
  nextBatch,
  RecordInput,
} from '../../../src/inputs/index.js';
import { temporaryDirectory } from '../../command.js';

const directory = temporaryDirectory();

/** A file of this text, by its path. */
function fileOf(name: string, text: string | Uint8Array): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

/** Numbers 0 … count - 1, of class even or odd. */
class Counting extends IterableSource.with({ count: z.int().min(0) }) {
  protected override *records(): Iterable<DataRecord> {
    for (let x = 0; x < this.hp.count; x++) yield { x, parity: x % 2 === 0 ? 'even' : 'odd' };
  }
}

const parity = ClassFeature.config({ column: 'parity', classes: ['even', 'odd'] });
const features = { x: NumberFeature.config({ columns: 'x' }), y: parity };

const inputOf = (fields: Partial<Parameters<typeof RecordInput.config>[0]>) =>
  build(
    RecordInput.config({ features, split: 'all', batchSize: 4, ...fields } as never) as Config<RecordInput>,
  );

/** A batch as plain lists. */
const lists = (batch: Batch) =>
  Object.fromEntries(Object.entries(batch).map(([name, { data }]) => [name, [...(data as Float32Array)]]));

async function allOf(input: RecordInput): Promise<Record<string, number[]>[]> {
  const batches = [];
  for (let batch = await nextBatch(input); batch; batch = await nextBatch(input)) batches.push(lists(batch));
  return batches;
}

test('a CSV file: quotes, empty lines and a byte order mark; the last batch is filled up with weight 0', async () => {
  const path = fileOf(
    'a.csv',
    '\uFEFFx, parity ,note\n0,even,"a, ""b"""\n\n1.5,odd,"two\nlines"\n-2e1, even ,c\n',
  );
  const source = CsvSource.config({ files: [path] });
  const pair = NumberFeature.config({ columns: ['x', 'x'] });
  expect(await allOf(inputOf({ source, features: { ...features, pair }, batchSize: 2 }))).toEqual([
    { x: [0, 1.5], y: [0, 1], pair: [0, 0, 1.5, 1.5], weights: [1, 1] },
    { x: [-20, 0], y: [0, 0], pair: [-20, -20, 0, 0], weights: [1, 0] },
  ]);
});

test('JSON Lines, and CSV files without a header, in the order of the files', async () => {
  const lines = fileOf(
    'b.jsonl',
    '{"x": 1, "parity": "odd"}\r\n\n{"x": true, "parity": "even", "more": [1]}\n',
  );
  expect(await allOf(inputOf({ source: JsonLinesSource.config({ files: [lines] }) }))).toEqual([
    { x: [1, 1, 0, 0], y: [1, 0, 0, 0], weights: [1, 1, 0, 0] },
  ]);
  const [one, two] = [fileOf('1.tsv', '4\teven\n'), fileOf('2.tsv', '5\todd')];
  const source = CsvSource.config({ files: [two, one], delimiter: '\t', columns: ['x', 'parity'] });
  expect(await allOf(inputOf({ source, batchSize: 2 }))).toEqual([{ x: [5, 4], y: [1, 0], weights: [1, 1] }]);
});

const squares = configurable(
  function* squares({ count }: { count: number }) {
    for (let x = 0; x < count; x++) yield { x, square: Float32Array.of(x, x * x) };
  },
  { count: z.int() },
);
const asynchronous = configurable(async function* asynchronous() {
  yield { x: 1 };
}, {});

test('records in the config, and those of a generator function: arrays nested, flat and typed, ids of classes', async () => {
  const source = [
    {
      x: [
        [1, 2],
        [3, 4],
      ],
      y: 1,
    },
    { x: [5, 6, 7, 8], y: 0 },
  ];
  const matrices = {
    x: ArrayFeature.config({ column: 'x', shape: [2, 2] }),
    y: ClassFeature.config({ column: 'y', classes: 2 }),
  };
  const input = inputOf({ source, features: matrices, batchSize: 2 });
  expect(input.batchSpecs()).toMatchObject({ x: { shape: [2, 2, 2] }, y: { shape: [2], dtype: 'int32' } });
  expect(await allOf(input)).toEqual([{ x: [1, 2, 3, 4, 5, 6, 7, 8], y: [1, 0], weights: [1, 1] }]);
  const ints = { square: ArrayFeature.config({ column: 'square', shape: [2], dtype: 'int32' }) };
  const made = inputOf({ source: squares.config({ count: 3 }), features: ints, batchSize: 3 });
  expect(made.batchSpecs().square).toEqual({ shape: [3, 2], dtype: 'int32' });
  expect(await allOf(made)).toEqual([{ square: [0, 0, 1, 1, 2, 4], weights: [1, 1, 1] }]);
});

test('records that do not fit are told by their number', async () => {
  const x = { x: ArrayFeature.config({ column: 'x', shape: [2] }) };
  const error = (value: never) =>
    inputOf({ source: [{ x: [0, 1] }, { x: value }], features: x })
      .getNext()
      .catch(({ message }: Error) => message);
  const where = "RecordInput 'input': record 1: feature 'x', column 'x': expected";
  expect(await error([1] as never)).toBe(`${where} an array of shape [2], got 1 number`);
  expect(await error('12' as never)).toBe(`${where} an array of shape [2], got "12"`);
  expect(await error([1, 'a'] as never)).toBe(
    `${where.replace(': expected', ', [1]: expected')} a number, got "a"`,
  );
  const id = inputOf({
    source: [{ y: 3 }],
    features: { y: ClassFeature.config({ column: 'y', classes: 3 }) },
  });
  await expect(id.getNext()).rejects.toThrow(
    "record 0: feature 'y', column 'y': 3 is not one of the 3 classes. They are: 0, 1, 2.",
  );
  // @ts-expect-error an async generator is for StreamInput
  expect(() => build(RecordInput.config({ source: asynchronous.config(), features, batchSize: 1 }))).toThrow(
    'RecordInput.source: expected a config that builds a source of records or an iterable of them, such as a generator (StreamInput takes async ones), got an asynchronous config',
  );
});

test('shapes are known before a record is read', () => {
  const input = inputOf({
    source: CsvSource.config({ files: ['nowhere.csv'] }),
    features: { x: NumberFeature.config({ columns: ['a', 'b', 'c'] }), y: parity },
  });
  expect(input.batchSpecs()).toEqual({
    x: { shape: [4, 3], dtype: 'float32' },
    y: { shape: [4], dtype: 'int32' },
    weights: { shape: [4], dtype: 'float32' },
  });
});

test('the splits of any data share no record, make all of it, and are the same for every batch size and host', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        count: fc.integer({ min: 2, max: 60 }),
        validationFraction: fc.double({ min: 0.1, max: 0.9, noNaN: true }),
        splitSeed: fc.nat(5),
        batchSize: fc.integer({ min: 1, max: 9 }),
      }),
      async ({ count, validationFraction, splitSeed, batchSize }) => {
        const held = Math.round(validationFraction * count);
        fc.pre(held > 0 && held < count);
        const source = Counting.config({ count });
        const rows = async (split: 'train' | 'validation', hosts: number) => {
          const numbers = [];
          for (let infeedHostIndex = 0; infeedHostIndex < hosts; infeedHostIndex++) {
            const fields = { source, split, validationFraction, splitSeed, batchSize, numInfeedHosts: hosts };
            for (const { x, weights } of await allOf(inputOf({ ...fields, infeedHostIndex })))
              numbers.push(...x!.filter((_, i) => weights![i] === 1));
          }
          return numbers.sort((a, b) => a - b);
        };
        const [train, validation] = [await rows('train', 1), await rows('validation', 2)];
        expect(validation).toHaveLength(held);
        expect([...train, ...validation].sort((a, b) => a - b)).toEqual(
          Array.from({ length: count }, (_, i) => i),
        );
      },
    ),
  );
});

test('training reads each record once an epoch, in another order, and resumes exactly', async () => {
  const input = inputOf({ source: Counting.config({ count: 8 }), isTraining: true });
  const next = async () => lists(await input.getNext()).x!;
  const epoch = async () => [...(await next()), ...(await next())];
  const [first, second] = [await epoch(), await epoch()];
  for (const each of [first, second])
    expect(each.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(second).not.toEqual(first);
  const state = input.getState();
  const third = await epoch();
  input.setState(state);
  expect(await epoch()).toEqual(third);
  expect(() => inputOf({ source: Counting.config({ count: 9 }), isTraining: true }).setState(state)).toThrow(
    /^Input 'train' cannot resume from the saved state, as its data has changed since: data is 9 records \(sha256 \w+\), was 8 records \(sha256 \w+\); rows is 9, was 8\. /,
  );
});

test.each([
  [
    'x,parity\n1,odd\n2,evne\n',
    "3: feature 'y', column 'parity': \"evne\" is not one of the 2 classes. Did you mean 'even'? They are: even, odd.",
  ],
  ['x,parity\n1,odd\n\nthree,odd\n', "4: feature 'x', column 'x': expected a number, got \"three\""],
  ['x,parity\n,odd\n', "2: feature 'x', column 'x': expected a number, got \"\""],
  ['z,parity\n1,odd\n', "2: feature 'x', no column 'x'. It has: z, parity."],
])('of a CSV file %j, the line is named', async (text, message) => {
  const path = fileOf('wrong.csv', text);
  await expect(inputOf({ source: CsvSource.config({ files: [path] }) }).getNext()).rejects.toThrow(
    `RecordInput 'input': ${path}:${message}`,
  );
});

test('files that are not what they should be, and splits without records, are told', async () => {
  const error = (fields: Parameters<typeof inputOf>[0]) =>
    inputOf(fields)
      .getNext()
      .then(
        () => 'none',
        ({ message }: Error) => message.replaceAll(`${directory}/`, ''),
      );
  const csv = (name: string, text: string | Uint8Array) =>
    error({ source: CsvSource.config({ files: [fileOf(name, text)] }) });
  expect(await csv('uneven.csv', 'x,parity\n1,odd\n2\n')).toMatch(
    /^RecordInput 'input': uneven\.csv is not a CSV file of the kind expected: Invalid Record Length: .* line 3/,
  );
  expect(await csv('twice.csv', 'x,x\n1,2\n')).toBe(
    "RecordInput 'input': twice.csv:1: two columns are called 'x'. Give each its own name.",
  );
  expect(await csv('latin1.csv', Uint8Array.of(120, 10, 233))).toBe(
    "RecordInput 'input': latin1.csv:2, byte 2: the text is not UTF-8.",
  );
  expect(await csv('empty.csv', 'x,parity\n')).toBe("RecordInput 'input': there are no records.");
  const jsonl = (text: string) =>
    error({ source: JsonLinesSource.config({ files: [fileOf('c.jsonl', text)] }) });
  expect(await jsonl('{"x": 1, "parity": "odd"}\n{"x": ')).toMatch(
    /^RecordInput 'input': c\.jsonl:2: not JSON: /,
  );
  expect(await jsonl('[1]\n')).toBe(
    "RecordInput 'input': c.jsonl:1: expected an object, { column: value, … }; got [1]",
  );
  expect(await error({ source: Counting.config({ count: 3 }), split: 'validation' })).toBe(
    "RecordInput 'input': split 'validation' is empty: validationFraction 0.1 of 3 records.",
  );
});

test('a batch has one tensor of a name, and classes are distinct', () => {
  expect(() => RecordInput.config({ features: { weights: parity } } as never)).toThrow(
    "'weights' is the weight of a row",
  );
  expect(() => ClassFeature.config({ column: 'a', classes: ['x', 'x'] })).toThrow('expected each class once');
});

test('missing numbers have the value of their column; without one they are errors', async () => {
  const path = fileOf('missing.csv', 'x,z,parity\n,1,even\nNA,NaN,\n3, ,odd\n');
  const source = CsvSource.config({ files: [path] });
  const columns = ['x', 'z'];
  const y = ClassFeature.config({ column: 'parity', classes: ['', 'even', 'odd'] });
  const x = NumberFeature.config({ columns, missing: { x: 2, z: -1 } });
  expect(await allOf(inputOf({ source, features: { x, y }, batchSize: 3 }))).toEqual([
    { x: [2, 1, 2, -1, 3, -1], y: [1, 0, 2], weights: [1, 1, 1] },
  ]);
  const partial = NumberFeature.config({ columns, missing: { x: 2 } });
  await expect(allOf(inputOf({ source, features: { x: partial, y } }))).rejects.toThrow(
    `${path}:3: feature 'x', column 'z': expected a number, got "NaN". ` +
      `For missing values, set the feature's 'missing', as in { "z": 0 }`,
  );
});

test('parts of splits of the source, of which the input holds a share out', async () => {
  const [train, test] = [fileOf('train.csv', 'x\n1\n2\n3\n4\n'), fileOf('test.csv', 'x\n5\n6\n')];
  const source = CsvSource.config({ files: { train: [train], test: [test] } });
  const xs = async (fields: object) => {
    const input = inputOf({ source, features: { x: features.x }, batchSize: 6, ...fields });
    const [batch] = await allOf(input);
    const count = batch!.weights!.filter(Boolean).length;
    return [input.dataIdentity().files!.map(({ path }) => path), batch!.x!.slice(0, count)];
  };
  expect(await xs({})).toEqual([
    [train, test],
    [1, 2, 3, 4, 5, 6],
  ]);
  expect(await xs({ splitName: 'test+train[-25%:]' })).toEqual([
    [test, train],
    [5, 6, 4],
  ]);
  const [[, kept], [, held]] = (await Promise.all(
    (['train', 'validation'] as const).map((split) =>
      xs({ splitName: 'train', split, validationFraction: 0.5 }),
    ),
  )) as [[unknown, number[]], [unknown, number[]]];
  expect([kept.length, [...kept, ...held].sort()]).toEqual([2, [1, 2, 3, 4]]);
  const listed = await allOf(
    inputOf({ source: [{ x: 1 }, { x: 2 }], features: { x: features.x }, splitName: 'all[1:]' }),
  );
  expect(listed[0]!.x).toEqual([2, 0, 0, 0]);
  await expect(inputOf({ source, splitName: 'train[:5]' }).getNext()).rejects.toThrow(
    "RecordInput 'input': 'train[:5]' reaches beyond the split, which has 4 records.",
  );
  await expect(inputOf({ source: [{ x: 1 }], splitName: 'train' }).getNext()).rejects.toThrow(
    "RecordInput 'input': the list has no split 'train'. It has: all.",
  );
});
