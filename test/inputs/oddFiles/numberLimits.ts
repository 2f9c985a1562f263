/** @file Integers and floats at the limits of int32, float32, 2^53 and 64 bits, in every format. */
import { float64, int64, tableFromArrays, tableToIPC } from '@uwdata/flechette';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  ArrayFeature,
  ArrowSource,
  type BaseRecordSource,
  CsvSource,
  JsonLinesSource,
  ParquetSource,
} from '../../../src/inputs/index.js';
import { rowReader } from '../../../src/inputs/records/recordBatches.js';
import type { OddFile, OddKind } from './oddFile.js';

/** Integers as text: those that are odd, their neighbours and their negations. */
const integer = fc
  .tuple(
    fc.constantFrom(
      0n,
      1n,
      255n,
      2n ** 15n,
      2n ** 24n,
      2n ** 31n,
      2n ** 32n + 5n,
      2n ** 53n,
      2n ** 62n,
      2n ** 63n - 2n,
    ),
    fc.bigInt({ min: -1n, max: 1n }),
    fc.boolean(),
  )
  .map(([n, near, isNegative]) => (isNegative ? -(n + near) : n + near));

const float = fc.oneof(
  fc.constantFrom(1.7, -0.5, 1e39, -1e39, 3.4028235e38, 2 ** 128, 1e-46, 5e-324, 1e300, 2147483648.5),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

const EXPECTED = {
  int32: 'an integer from -2147483648 to 2147483647',
  float32: 'a number of float32, whose magnitude is at most 3\\.4e38',
};

type Value = bigint | number;

interface Format {
  readonly name: string;
  readonly bytesOf: (values: readonly Value[], isInteger: boolean) => string | Uint8Array;
  readonly source: (files: string[]) => Config<BaseRecordSource>;
  /** Where row `i` is. */
  readonly place: (i: number) => string;
}

const formats: readonly Format[] = [
  {
    name: 'a.csv',
    bytesOf: (values) => `x\n${values.map((value) => `${value}\n`).join('')}`,
    source: (files) => CsvSource.config({ files }),
    place: (i) => `FILE:${i + 2}`,
  },
  {
    name: 'a.jsonl',
    bytesOf: (values) => values.map((value) => `{"x": ${value}}\n`).join(''),
    source: (files) => JsonLinesSource.config({ files }),
    place: (i) => `FILE:${i + 1}`,
  },
  {
    name: 'a.parquet',
    bytesOf: (data, isInteger) =>
      new Uint8Array(
        parquetWriteBuffer({
          columnData: [{ name: 'x', data: [...data], type: isInteger ? 'INT64' : 'DOUBLE' }],
        }),
      ),
    source: (files) => ParquetSource.config({ files }),
    place: (i) => `FILE, row ${i}`,
  },
  {
    name: 'a.arrow',
    bytesOf: (data, isInteger) =>
      tableToIPC(tableFromArrays({ x: [...data] }, { types: { x: isInteger ? int64() : float64() } }), {
        format: 'stream',
      })!,
    source: (files) => ArrowSource.config({ files }),
    place: (i) => `FILE, row ${i}`,
  },
];

/** The number that a tensor of a dtype has for a value, by arithmetic on its digits; undefined where it holds none. */
function held(value: Value, dtype: 'float32' | 'int32'): number | undefined {
  if (dtype === 'float32')
    return Number.isFinite(Math.fround(Number(value))) ? Math.fround(Number(value)) : undefined;
  if (typeof value === 'number' && !Number.isInteger(value)) return undefined;
  const exact = BigInt(value);
  return BigInt.asIntN(32, exact) === exact ? Number(exact) : undefined;
}

const values: fc.Arbitrary<readonly Value[]> = fc.oneof<fc.Arbitrary<readonly Value[]>[]>(
  fc.array(integer, { minLength: 1, maxLength: 6 }),
  fc.array(float, { minLength: 1, maxLength: 6 }),
);

/** The value that the records of a file have, as a feature of arrays of one number reads it. */
const inFiles: fc.Arbitrary<OddFile> = fc
  .record({
    format: fc.constantFrom(...formats),
    values,
    dtype: fc.constantFrom('float32' as const, 'int32' as const),
  })
  .map(({ format, values, dtype }) => {
    const wanted = values.map((value) => held(value, dtype));
    const bad = wanted.indexOf(undefined);
    const shown = String(values[bad]).slice(0, 20).replaceAll(/[.+]/g, '\\$&');
    return {
      files: { [format.name]: format.bytesOf(values, typeof values[0] === 'bigint') },
      read(files) {
        const table = build<BaseRecordSource>(format.source([...files])).open();
        const read = rowReader({ y: build(ArrayFeature.config({ column: 'x', shape: [1], dtype })) });
        const rows = Array.from({ length: table.numRecords }, (_, i) =>
          read({ x: [table.read(i).x] }, () => table.place(i)),
        );
        table.close();
        // -0 is 0.
        return rows.map(({ y }) => y![0]! + 0);
      },
      truth:
        bad < 0
          ? { values: wanted.map((value) => value! + 0) }
          : {
              refused: new RegExp(
                `^${format.place(bad)}: feature 'y', column 'x', \\[0\\]: expected ${EXPECTED[dtype]}, got "?${shown}`,
              ),
            },
    };
  });

export const numberLimits: OddKind = {
  name: 'integers and floats at the limits of their types, in every format',
  cases: inFiles,
  tries: 4000,
  short: 200,
};
