/** @file Values of Parquet's pages, by the examples of its specification: whole ones pass, and no part of one does. */
import { expect, test } from 'vitest';
import {
  type ColumnDecoder,
  type Cursor,
  checkValues,
} from '../../../src/inputs/records/parquetEncodings.js';

type Encoding = Parameters<typeof checkValues>[0];

const text = (characters: string): number[] => [...Buffer.from(characters)];
const cursorOf = (bytes: readonly number[]): Cursor => ({ bytes: Uint8Array.from(bytes), at: 0 });
const decoderOf = (type: string, bytes?: number) =>
  ({ type, element: { type_length: bytes } }) as unknown as ColumnDecoder;

function check(
  encoding: Encoding,
  type: string,
  count: number,
  bytes: readonly number[],
  values = 0,
): number {
  const cursor = cursorOf(bytes);
  checkValues(
    encoding,
    cursor,
    count,
    decoderOf(type, 3),
    values > 0 ? new Array(values).fill('v') : undefined,
  );
  return cursor.at;
}

const message = (act: () => unknown): string => {
  try {
    return `nothing: ${act()}`;
  } catch (error) {
    return (error as Error).message;
  }
};

/** 0, 2, 0 and 3 as differences of 3 bits; then 4, 2, 6 and 5. */
const [prefixes, suffixes] = [
  [8, 1, 4, 0, 3, 3, 0x44, 0x01, 0],
  [8, 1, 4, 8, 3, 3, 0x70, 0, 0],
] as const;

test.each<[string, Encoding, string, number, number[], number?]>([
  ['integers', 'PLAIN', 'INT32', 2, [1, 0, 0, 0, 2, 0, 0, 0]],
  ['values of fixed length', 'PLAIN', 'FIXED_LEN_BYTE_ARRAY', 2, text('abcdef')],
  ['texts', 'PLAIN', 'BYTE_ARRAY', 2, [3, 0, 0, 0, ...text('abc'), 1, 0, 0, 0, ...text('d')]],
  ['nine booleans', 'PLAIN', 'BOOLEAN', 9, [0b101, 1]],
  ['booleans in runs', 'RLE', 'BOOLEAN', 12, [4, 0, 0, 0, 8, 1, 3, 0b10110101]],
  ['numbers of a dictionary', 'RLE_DICTIONARY', 'BYTE_ARRAY', 10, [2, 4, 2, 3, 0b11100100, 0b00011011], 4],
  ['floats by their bytes', 'BYTE_STREAM_SPLIT', 'FLOAT', 2, [1, 2, 3, 4, 5, 6, 7, 8]],
  ['equal differences', 'DELTA_BINARY_PACKED', 'INT32', 5, [8, 1, 5, 2, 2, 0]],
  ['differences of two bits', 'DELTA_BINARY_PACKED', 'INT64', 8, [8, 1, 8, 14, 3, 2, 0xc0, 0x3f]],
  ['a last part without what pads it', 'DELTA_BINARY_PACKED', 'INT32', 4, [8, 1, 4, 0, 0, 5, 1, 2]],
  ['parts of eight', 'DELTA_BINARY_PACKED', 'INT32', 10, [16, 2, 10, 0, 0, 1, 2, 7, 1]],
  ['one number', 'DELTA_BINARY_PACKED', 'INT32', 1, [8, 1, 1, 14]],
  [
    'lengths',
    'DELTA_LENGTH_BYTE_ARRAY',
    'BYTE_ARRAY',
    4,
    [8, 1, 4, 10, 0, 1, 2, ...text('HelloWorldFoobarABCDEF')],
  ],
  [
    'common beginnings',
    'DELTA_BYTE_ARRAY',
    'BYTE_ARRAY',
    4,
    [...prefixes, ...suffixes, ...text('axislebabbleyhood')],
  ],
])('%s', (_, encoding, type, count, bytes, values) => {
  // Behind them lies what belongs to nobody.
  expect(check(encoding, type, count, [...bytes, 255, 255], values)).toBeGreaterThanOrEqual(bytes.length);
  expect(check(encoding, type, count, bytes, values)).toBe(bytes.length);
  for (let length = 0; length < bytes.length; length++)
    expect(
      message(() => check(encoding, type, count, bytes.slice(0, length), values)),
      `${length} bytes`,
    ).toMatch(/ has \d+ bytes, and the page \d+ behind those before it$/);
});

test.each<[string, Encoding, string, number, number[], number?]>([
  ['the encoding of its values is not known', undefined, 'INT32', 1, []],
  ['the encoding BIT_PACKED is not known', 'BIT_PACKED', 'INT32', 1, []],
  ['values of type INT32 have the encoding of booleans', 'RLE', 'INT32', 1, [0, 0, 0, 0]],
  ['values of type FLOAT have no differences', 'DELTA_BINARY_PACKED', 'FLOAT', 1, []],
  ['the values are numbers of a dictionary that is not there', 'RLE_DICTIONARY', 'INT32', 1, [1]],
  ['booleans have no dictionary', 'RLE_DICTIONARY', 'BOOLEAN', 1, [1], 2],
  ['a list of numbers of 3 values has 3; the largest is 2', 'RLE_DICTIONARY', 'INT32', 1, [2, 2, 3], 3],
  ['a list of numbers of 3 values has numbers of 33 bits', 'RLE_DICTIONARY', 'INT32', 1, [33, 2, 3], 3],
  [
    'a list of numbers of 3 values has a run of 2, and 1 are left',
    'RLE_DICTIONARY',
    'INT32',
    1,
    [2, 4, 1],
    3,
  ],
  [
    'a list of differences is of 5 numbers; expected 4',
    'DELTA_BINARY_PACKED',
    'INT32',
    4,
    [8, 1, 5, 2, 2, 0],
  ],
  [
    'a list of differences has 12 numbers a block in 1 parts',
    'DELTA_BINARY_PACKED',
    'INT32',
    5,
    [12, 1, 5, 2, 2, 0],
  ],
  [
    'a list of differences has 8 numbers a block in 0 parts',
    'DELTA_BINARY_PACKED',
    'INT32',
    5,
    [8, 0, 5, 2, 2, 0],
  ],
  ['a list of differences has numbers of 33 bits', 'DELTA_BINARY_PACKED', 'INT32', 5, [8, 1, 5, 2, 2, 33]],
  [
    'a list of differences has a number of more than 5 bytes',
    'DELTA_BINARY_PACKED',
    'INT32',
    5,
    [255, 255, 255, 255, 255, 1],
  ],
  ['a value of -1 bytes', 'DELTA_LENGTH_BYTE_ARRAY', 'BYTE_ARRAY', 1, [8, 1, 1, 1]],
  [
    'value 0 has 1 bytes of the one before, which has 0',
    'DELTA_BYTE_ARRAY',
    'BYTE_ARRAY',
    1,
    [8, 1, 1, 2, 8, 1, 1, 2, 97],
  ],
])('%s', (said, encoding, type, count, bytes, values) => {
  expect(message(() => check(encoding, type, count, bytes, values))).toBe(said);
});

test('differences of 64 bits are for numbers of 64 bits', () => {
  const bytes = [8, 1, 2, 0, 0, 64, ...new Array(8).fill(1)];
  expect(check('DELTA_BINARY_PACKED', 'INT64', 2, bytes)).toBe(bytes.length);
  expect(message(() => check('DELTA_BINARY_PACKED', 'INT32', 2, bytes))).toContain('numbers of 64 bits');
});
