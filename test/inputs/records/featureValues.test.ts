/** @file Numbers of features that do not fit, and arrays of another nesting: refused with the record, the column and the indices. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  ArrayFeature,
  BaseFeature,
  ByteTokenizer,
  ClassFeature,
  type DataRecord,
  Feature,
  LanguageModelFeatures,
  NumberFeature,
  RecordInput,
  SeqioInput,
  Task,
  TfRecordSource,
} from '../../../src/inputs/index.js';
import { rowReader } from '../../../src/inputs/records/recordBatches.js';
import { OwnRecords } from '../ownRecords.js';

const read = (feature: Config<BaseFeature>, record: DataRecord) => {
  const row = rowReader({ y: build(feature) })(record, () => 'a.jsonl:3');
  return Array.from(row.y!);
};
const error = (make: () => unknown): string => {
  try {
    make();
    return 'none';
  } catch (caught) {
    return `${(caught as Error).name}: ${(caught as Error).message}`;
  }
};
const refused = (feature: Config<BaseFeature>, x: unknown) =>
  error(() => read(feature, { x })).replace("InputError: a.jsonl:3: feature 'y', ", '');

const array = (dtype: 'float32' | 'int32', ...shape: number[]) =>
  ArrayFeature.config({ column: 'x', shape, dtype });
const INT32 = 'expected an integer from -2147483648 to 2147483647';
const FLOAT32 = 'expected a number of float32, whose magnitude is at most 3.4e38';

test.each([
  [3e9, `column 'x', [1]: ${INT32}, got 3000000000`],
  [2 ** 32 + 5, `column 'x', [1]: ${INT32}, got 4294967301`],
  [-(2 ** 31) - 1, `column 'x', [1]: ${INT32}, got -2147483649`],
  [1.7, `column 'x', [1]: ${INT32}, got 1.7`],
  ['1.7', `column 'x', [1]: ${INT32}, got "1.7"`],
  [9007199254740993n, `column 'x', [1]: ${INT32}, got 9007199254740993`],
  [10n ** 400n, /^column 'x', \[1\]: expected an integer .*, got 10{39}$/],
  [Number.NaN, "column 'x', [1]: expected a number, got NaN"],
  [Number.NEGATIVE_INFINITY, "column 'x', [1]: expected a number, got -Infinity"],
  ['', `column 'x', [1]: expected a number, got ""`],
  [null, "column 'x', [1]: expected a number, got null"],
  [[1], "column 'x', [1]: expected a number, got [1]"],
  [{ a: 1n }, `column 'x', [1]: expected a number, got {"a":"1"}`],
])('int32 does not hold %s', (x, message) => {
  const said = refused(array('int32', 2), [1, x]);
  if (typeof message === 'string') expect(said).toBe(message);
  else expect(said).toMatch(message);
});

test('float32 rounds, and refuses what is beyond it', () => {
  expect(read(array('float32', 4), { x: [0.1, 2 ** 53, 9007199254740993n, 3.4e38] })).toEqual([
    Math.fround(0.1),
    2 ** 53,
    2 ** 53,
    Math.fround(3.4e38),
  ]);
  expect(refused(array('float32', 1), [1e39])).toBe(`column 'x', [0]: ${FLOAT32}, got 1e+39`);
  expect(refused(NumberFeature.config({ columns: 'x' }), '-1e39')).toBe(
    `column 'x': ${FLOAT32}, got "-1e39"`,
  );
  expect(refused(NumberFeature.config({ columns: ['x'] }), 2n ** 128n)).toMatch(
    /^column 'x': .* got 34028236/,
  );
  expect(refused(NumberFeature.config({ columns: 'x' }), '1e400')).toBe(
    `column 'x': expected a number, got "1e400"`,
  );
});

test('any integers that int32 holds come back; any others are refused by their indices', () => {
  const held = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
  const other = fc.oneof(
    fc.double().filter((x) => !Number.isInteger(x) || Math.abs(x) > 2 ** 31),
    fc.bigInt({ min: 2n ** 31n, max: 2n ** 70n }),
    fc.bigInt({ min: -(2n ** 70n), max: -(2n ** 31n) - 1n }),
  );
  const rows = fc.array(fc.tuple(held, held, held), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(rows, other, fc.nat(), (given, bad, at) => {
      const feature = array('int32', given.length, 3);
      expect(read(feature, { x: given })).toEqual(given.flat());
      expect(read(feature, { x: Int32Array.from(given.flat()) })).toEqual(given.flat());
      const r = at % given.length;
      const spoiled = given.map((row, i) => (i === r ? row.with(at % 3, bad as never) : row));
      expect(refused(feature, spoiled)).toMatch(`column 'x', [${r}, ${at % 3}]: expected a`);
      expect(refused(feature, spoiled.flat())).toMatch(`column 'x', [${r * 3 + (at % 3)}]: expected a`);
    }),
  );
});

test.each([
  [
    [
      [1, 2, 3],
      [4, 5, 6],
    ],
    "column 'x': expected an array of shape [3, 2], got one of shape [2, 3]",
  ],
  [
    [
      [1, 2],
      [3, 4],
    ],
    "column 'x': expected an array of shape [3, 2], got one of shape [2, 2]",
  ],
  [[[1, 2], [3, 4, 5], [6]], "column 'x', [1]: expected an array of shape [2], got 3 numbers"],
  [[[1, 2], [3, 4], []], "column 'x', [2]: expected an array of shape [2], got 0 numbers"],
  [[[1, 2], [3, 4], 5], "column 'x', [2]: expected an array of shape [2], got 5"],
  [
    [
      [[1], [2]],
      [[3], [4]],
      [[5], [6]],
    ],
    "column 'x', [0, 0]: expected a number, got [1]",
  ],
  [[1, 2, 3, 4, 5], "column 'x': expected an array of shape [3, 2], got 5 numbers"],
  [[1, 2, [3, 4], 5, 6, 7], "column 'x', [2]: expected a number, got [3,4]"],
  [[[1, 2, 3, 4, 5, 6]], "column 'x': expected an array of shape [3, 2], got one of shape [1, 6]"],
  ['[1, 2]', `column 'x': expected an array of shape [3, 2], got "[1, 2]"`],
  [
    new DataView(new ArrayBuffer(6)),
    `column 'x': expected an array of shape [3, 2], got "DataView of 6 bytes"`,
  ],
])('an array %j of another nesting is refused', (x, message) => {
  expect(refused(array('float32', 3, 2), x)).toBe(message);
});

test('arrays of arrays of any kind, nested as the shape or flat', () => {
  for (const x of [
    [
      [1, 2],
      [3, 4],
      [5, 6],
    ],
    [Int8Array.of(1, 2), [3, '4'], Float64Array.of(5, 6)],
    [1, 2n, 3, 4, 5, 6],
    BigInt64Array.of(1n, 2n, 3n, 4n, 5n, 6n),
  ])
    expect(read(array('int32', 3, 2), { x })).toEqual([1, 2, 3, 4, 5, 6]);
  expect(read(array('int32', 1, 1), { x: [[7]] })).toEqual([7]);
  expect(read(array('int32', 1, 1), { x: [7] })).toEqual([7]);
});

test('what features of one’s own give is checked by their specs', () => {
  class Own extends BaseFeature {
    spec() {
      return { shape: [2], dtype: 'int32' as const };
    }
    valuesOf({ x }: DataRecord) {
      return x as number[];
    }
  }
  const own = Own.config();
  expect(read(own, { x: [1, -0] })).toEqual([1, -0]);
  expect(refused(own, [1, 3e9])).toBe(`array 'y', value 1: ${INT32}, got 3000000000`);
  expect(refused(own, [Number.NaN, 1])).toBe(`array 'y', value 0: ${INT32}, got NaN`);
  expect(refused(own, [1, 2, 3])).toBe("array 'y': expected 2 values, as its spec() says; got 3");
});

test('a class is told by a bigint that is none', () => {
  const feature = ClassFeature.config({ column: 'x', classes: 2 });
  expect(read(feature, { x: 1n })).toEqual([1]);
  expect(refused(feature, 9007199254740993n)).toMatch(
    /^column 'x': 9007199254740993 is not one of the 2 classes\./,
  );
});

test('records in memory and of a function are told by their number', async () => {
  const features = { y: array('int32', 1) };
  const fields = { features, split: 'all', batchSize: 1 } as const;
  const input = build(RecordInput.config({ source: [{ x: [1] }, { x: [3e9] }], ...fields }));
  await expect(input.getNext()).rejects.toThrow(
    `RecordInput 'input': record 1: feature 'y', column 'x', [0]: ${INT32}, got 3000000000`,
  );
});

test('token ids that int32 does not hold are refused, not wrapped', async () => {
  const first = async (targets: unknown): Promise<unknown> => {
    const input = build(
      SeqioInput.config({
        mixtureOrTask: Task.config({
          source: OwnRecords.config({ name: 'tokens' }),
          preprocessors: [],
          features: { targets: Feature.config({ tokenizer: ByteTokenizer.config(), addEos: false }) },
        }),
        splitName: 'all',
        taskFeatureLengths: { targets: 2 },
        batchSize: 1,
      }),
    );
    OwnRecords.records.set('tokens', [{ targets }]);
    return (await input.getNext()).labels!.data;
  };
  expect(await first([7, -8])).toEqual(Int32Array.of(7, 8));
  const ids = 'expected a token id, an integer from -2147483648 to 2147483647, got';
  for (const [id, said] of [
    [2 ** 32 + 5, '4294967301'],
    [3e9, '3000000000'],
    [-(2 ** 31) - 1, '-2147483649'],
    [1.5, '1.5'],
    [5n, '5'],
    [null, 'null'],
  ])
    await expect(first([1, id])).rejects.toThrow(`record 0: 'targets', position 1: ${ids} ${said}.`);
  await expect(first(Float64Array.of(Number.NaN))).rejects.toThrow(`'targets', position 0: ${ids} NaN.`);
  await expect(first('text')).rejects.toThrow(
    `'targets': expected token ids, got "text". Put Tokenize before it.`,
  );
  expect(() => LanguageModelFeatures.config({ bosId: 2 ** 32 })).toThrow('LanguageModelFeatures.bosId');
});

test('numbers that settings put in the place of missing ones fit, too', () => {
  const missing = (x: number) => () => build(NumberFeature.config({ columns: 'x', missing: { x } }));
  expect(error(missing(3.4e38))).toBe('none');
  expect(error(missing(1e39))).toMatch(
    /\.missing\.x: expected a number of float32, whose magnitude is at most 3\.4e38/,
  );
  const example = (value: number) => () =>
    build(
      TfRecordSource.config({
        files: ['a.tfrecord'],
        features: { x: { dtype: 'float32', default: value } },
      }),
    );
  expect(error(example(-3.4e38))).toBe('none');
  expect(error(example(-1e39))).toMatch(/features\.x\.default: must be a value of the dtype/);
});
