/** @file Decimals, times and integers of 64 bits in Parquet, by hyparquet-writer, and in Arrow, by flechette. */
import * as arrow from '@uwdata/flechette';
import fc from 'fast-check';
import type { SchemaElement } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { ArrowSource, ParquetSource } from '../../../src/inputs/index.js';
import { type OddKind, recordsOf } from './oddFile.js';

/** A type of a column of integers, which stand for as many units of 10^-scale. */
interface Type {
  readonly scale: number;
  /** Range of its integers, inclusive. */
  readonly range: readonly [bigint, bigint];
  readonly parquet?: Partial<SchemaElement>;
  readonly arrow?: arrow.DataType;
  /** The value that flechette writes as an integer. */
  readonly forArrow?: (n: bigint) => unknown;
}

const signed = (bits: number): readonly [bigint, bigint] => [
  -(2n ** BigInt(bits - 1)),
  2n ** BigInt(bits - 1) - 1n,
];
const unsigned = (bits: number): readonly [bigint, bigint] => [0n, 2n ** BigInt(bits) - 1n];
const digits = (count: number): readonly [bigint, bigint] => [
  1n - 10n ** BigInt(count),
  10n ** BigInt(count) - 1n,
];
const day = (units: bigint): readonly [bigint, bigint] => [0n, 86_400n * units - 1n];

const time = (unit: 'MILLIS' | 'MICROS' | 'NANOS') =>
  ({ type: 'TIME', isAdjustedToUTC: false, unit }) as const;
const stamp = (unit: 'MILLIS' | 'MICROS' | 'NANOS') =>
  ({ type: 'TIMESTAMP', isAdjustedToUTC: true, unit }) as const;
const decimal = (precision: number, scale: number, element: Partial<SchemaElement>): Type => ({
  scale,
  range: digits(precision),
  parquet: { ...element, converted_type: 'DECIMAL', precision, scale },
  arrow: arrow.decimal(precision, scale, precision > 38 ? 256 : 128),
});
const plain = (n: bigint): unknown => n;
const number = (n: bigint): unknown => Number(n);

const types: Readonly<Record<string, Type>> = {
  int64: { scale: 0, range: signed(64), parquet: { type: 'INT64' }, arrow: arrow.int64(), forArrow: plain },
  uint64: {
    ...{ scale: 0, range: unsigned(63), arrow: arrow.uint64(), forArrow: plain },
    parquet: { type: 'INT64', converted_type: 'UINT_64' },
  },
  int32: { scale: 0, range: signed(32), parquet: { type: 'INT32' }, arrow: arrow.int32(), forArrow: number },
  'time ms': {
    ...{ scale: 0, range: day(1000n), arrow: arrow.timeMillisecond(), forArrow: number },
    parquet: { type: 'INT32', logical_type: time('MILLIS') },
  },
  'time ms, old': { scale: 0, range: day(1000n), parquet: { type: 'INT32', converted_type: 'TIME_MILLIS' } },
  'time us': {
    ...{ scale: 3, range: day(10n ** 6n), arrow: arrow.timeMicrosecond(), forArrow: plain },
    parquet: { type: 'INT64', logical_type: time('MICROS') },
  },
  'time us, old': {
    scale: 3,
    range: day(10n ** 6n),
    parquet: { type: 'INT64', converted_type: 'TIME_MICROS' },
  },
  'time ns': {
    ...{ scale: 6, range: day(10n ** 9n), arrow: arrow.timeNanosecond(), forArrow: plain },
    parquet: { type: 'INT64', logical_type: time('NANOS') },
  },
  'timestamp ms': { scale: 0, range: signed(64), parquet: { type: 'INT64', logical_type: stamp('MILLIS') } },
  'timestamp us': { scale: 3, range: signed(64), parquet: { type: 'INT64', logical_type: stamp('MICROS') } },
  'timestamp ns': { scale: 6, range: signed(64), parquet: { type: 'INT64', logical_type: stamp('NANOS') } },
  'timestamp us, old': {
    scale: 3,
    range: signed(64),
    parquet: { type: 'INT64', converted_type: 'TIMESTAMP_MICROS' },
  },
  'duration us': {
    scale: 3,
    range: signed(64),
    arrow: arrow.duration(arrow.TimeUnit.MICROSECOND),
    forArrow: plain,
  },
  'decimal(9, 4)': decimal(9, 4, { type: 'INT32' }),
  'decimal(18, 3)': decimal(18, 3, { type: 'INT64' }),
  'decimal(38, 20)': decimal(38, 20, { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16 }),
  'decimal(38, 0)': decimal(38, 0, { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16 }),
  'decimal(76, 30)': decimal(76, 30, { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 32 }),
};

/** The digits of `n` / 10^`scale`, without zeros at their end. */
function digitsOf(n: bigint, scale: number): string {
  const text = String(n < 0n ? -n : n).padStart(scale + 1, '0');
  const point = text.length - scale;
  const fraction = text.slice(point).replace(/0+$/, '');
  return `${n < 0n ? '-' : ''}${text.slice(0, point)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** What the guide says of them: a number where it has these digits, else a bigint, or text where there is a fraction. */
function recordValue(n: bigint, scale: number): unknown {
  const text = digitsOf(n, scale);
  if (!text.includes('.')) return Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text);
  return Number(text).toFixed(text.split('.')[1]!.length) === text ? Number(text) : text;
}

const integerIn = ([min, max]: readonly [bigint, bigint]) =>
  fc.oneof(
    fc.bigInt({ min, max }),
    fc.constantFrom(min, max, 0n > min ? -1n : min, 1n),
    fc.integer({ min: 0, max: 10 ** 6 }).map((n) => (BigInt(n) <= max ? BigInt(n) : max)),
  );

export const decimalsAndTimes: OddKind = {
  name: 'decimals, times and integers of 64 bits in Parquet and Arrow',
  cases: fc
    .record({
      name: fc.constantFrom(...Object.keys(types)),
      isParquet: fc.boolean(),
      hasDictionary: fc.boolean(),
    })
    .chain(({ name, isParquet, hasDictionary }) => {
      const type = types[name]!;
      const { scale, range, parquet, arrow: arrowType, forArrow = plain } = type;
      const values = fc.array(fc.option(integerIn(range)), { minLength: 1, maxLength: 12 });
      return values.map((some) => {
        // What comes more than once is written as a dictionary.
        const data = hasDictionary ? [...some, ...some, ...some, ...some] : some;
        const inParquet = (isParquet || arrowType === undefined) && parquet !== undefined;
        const isNarrow = parquet?.type === 'INT32' && parquet.converted_type !== 'DECIMAL';
        const bytes = inParquet
          ? new Uint8Array(
              parquetWriteBuffer({
                columnData: [{ name: 'x', data: data.map((n) => (n !== null && isNarrow ? Number(n) : n)) }],
                schema: [
                  { name: 'root', num_children: 1 },
                  { name: 'x', repetition_type: 'OPTIONAL', ...parquet },
                ],
              }),
            )
          : arrow.tableToIPC(
              arrow.tableFromArrays(
                { x: data.map((n) => (n === null ? null : forArrow(n))) },
                { types: { x: arrowType! } },
              ),
              { format: 'file' },
            )!;
        const Source = inParquet ? ParquetSource : ArrowSource;
        return {
          files: { 'a.data': bytes },
          read: (files: readonly string[]) =>
            recordsOf(Source.config({ files: [...files] })).map(({ x }) => x),
          truth: { values: data.map((n) => (n === null ? null : recordValue(n, scale))) },
        };
      });
    }),
  tries: 4000,
  short: 200,
};
