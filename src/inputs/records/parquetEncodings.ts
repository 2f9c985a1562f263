/** @file Encodings of Parquet's pages: levels are read, and values checked before a library decodes them. */
import type { DecodedArray, Encoding } from 'hyparquet';
import type { readPage } from 'hyparquet/src/column.js';
import { deltaBinaryUnpack } from 'hyparquet/src/delta.js';
import { stated } from './columnFile.js';
import { LONGEST_RECORD } from './offsetIndex.js';

/** The library's options for decoding a column. */
export type ColumnDecoder = Parameters<typeof readPage>[2];

/** Bytes that are read from the front. */
export interface Cursor {
  readonly bytes: Uint8Array;
  at: number;
}

/** Goes past bytes. @returns where they begin @throws Error where they are not there */
export function take(cursor: Cursor, count: number, what: string): number {
  const left = cursor.bytes.length - cursor.at;
  if (!(count >= 0 && count <= left))
    throw new Error(`${what} has ${stated(count)} bytes, and the page ${left} behind those before it`);
  cursor.at += count;
  return cursor.at - count;
}

/** A number of four bytes, the low one first. */
export function uint32(cursor: Cursor, what: string): number {
  const at = take(cursor, 4, what);
  const { bytes } = cursor;
  return bytes[at]! + 256 * (bytes[at + 1]! + 256 * (bytes[at + 2]! + 256 * bytes[at + 3]!));
}

/** A number of seven bits a byte, low ones first. */
function varint(cursor: Cursor, mostBytes: number, what: string): number {
  let value = 0;
  for (let i = 0; i < mostBytes; i++) {
    const byte = cursor.bytes[take(cursor, 1, what)]!;
    value += (byte & 127) * 2 ** (7 * i);
    if (byte < 128) return value;
  }
  throw new Error(`${what} has a number of more than ${mostBytes} bytes`);
}

/**
 * Numbers of runs: groups of eight packed ones, or one repeated.
 *
 * @param most the largest that there can be. @throws Error for larger ones, and for runs of another number of them
 */
export function readRuns(
  cursor: Cursor,
  width: number,
  count: number,
  most: number,
  what: string,
): Uint32Array {
  if (width > 32) throw new Error(`${what} has numbers of ${width} bits`);
  const numbers = new Uint32Array(count);
  const check = (number: number): number => {
    if (number > most) throw new Error(`${what} has ${number}; the largest is ${most}`);
    return number;
  };
  for (let seen = 0; seen < count; ) {
    const head = varint(cursor, 5, what);
    const size = Math.floor(head / 2);
    if (head % 2 === 0) {
      if (size > count - seen) throw new Error(`${what} has a run of ${size}, and ${count - seen} are left`);
      const at = take(cursor, Math.ceil(width / 8), what);
      let number = 0;
      for (let i = cursor.at - 1; i >= at; i--) number = 256 * number + cursor.bytes[i]!;
      numbers.fill(check(number), seen, seen + size);
      seen += size;
      continue;
    }
    const start = take(cursor, size * width, what);
    if (size === 0) continue;
    const inGroups = Math.min(8 * size, count - seen);
    for (let i = 0; i < inGroups; i++) {
      let number = 0;
      for (let bit = 0; bit < width; ) {
        const position = i * width + bit;
        const offset = position % 8;
        const used = Math.min(8 - offset, width - bit);
        const byte = cursor.bytes[start + (position - offset) / 8]!;
        number += ((byte >> offset) & (2 ** used - 1)) * 2 ** bit;
        bit += used;
      }
      numbers[seen++] = check(number);
    }
  }
  return numbers;
}

/** Goes past numbers that are stored by their differences. @throws Error where they are others than `count` */
function skipDeltas(cursor: Cursor, count: number, mostBits: number): void {
  const what = 'a list of differences';
  const [blockSize, numParts, total] = [0, 0, 0].map(() => varint(cursor, 5, what)) as [
    number,
    number,
    number,
  ];
  varint(cursor, 10, what);
  if (total !== count) throw new Error(`${what} is of ${total} numbers; expected ${count}`);
  const inPart = blockSize / numParts;
  if (!(numParts > 0 && inPart > 0 && inPart % 8 === 0 && numParts <= cursor.bytes.length))
    throw new Error(`${what} has ${blockSize} numbers a block in ${numParts} parts`);
  for (let left = count - 1; left > 0; ) {
    varint(cursor, 10, what);
    const widths = take(cursor, numParts, what);
    for (let part = 0; part < numParts && left > 0; part++, left -= inPart) {
      const width = cursor.bytes[widths + part]!;
      if (width > mostBits) throw new Error(`${what} has numbers of ${width} bits`);
      const size = (inPart * width) / 8;
      // The last part may be cut off behind its last number.
      const needed = left >= inPart ? size : Math.ceil((left * width) / 8);
      take(cursor, needed, what);
      cursor.at = Math.min(cursor.bytes.length, cursor.at + size - needed);
    }
  }
}

/** Lengths that are stored by their differences. @throws Error for negative ones */
function readLengths(cursor: Cursor, count: number, what: string): Int32Array {
  const start = cursor.at;
  if (count > 0) skipDeltas(cursor, count, 32);
  const { bytes } = cursor;
  const reader = {
    view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length),
    offset: start,
  };
  const lengths = new Int32Array(count);
  if (count > 0) deltaBinaryUnpack(reader, count, lengths);
  // The library reads on from there, which is past the end where the last part is cut off.
  cursor.at = Math.min(reader.offset, bytes.length);
  const negative = lengths.find((length) => length < 0);
  if (negative !== undefined) throw new Error(`${what} of ${negative} bytes`);
  return lengths;
}

const WIDTHS: Readonly<Record<string, number>> = { INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8 };

type Check = (cursor: Cursor, count: number, decoder: ColumnDecoder, dictionary?: DecodedArray) => void;

function widthOf({ type, element }: ColumnDecoder): number {
  const width = type === 'FIXED_LEN_BYTE_ARRAY' ? element.type_length : WIDTHS[type];
  if (width !== undefined && width > 0) return width;
  throw new Error(`values of type ${type} have ${stated(width)} bytes each`);
}

/** Conditions under which the library decodes the values of an encoding. @throws Error where one fails */
const CHECKS: Partial<Readonly<Record<Encoding, Check>>> = {
  PLAIN(cursor, count, decoder) {
    const { type } = decoder;
    if (type === 'BOOLEAN') take(cursor, Math.ceil(count / 8), 'a list of booleans');
    else if (type !== 'BYTE_ARRAY') take(cursor, count * widthOf(decoder), `a list of ${count} values`);
    else for (let i = 0; i < count; i++) take(cursor, uint32(cursor, `value ${i}`), `value ${i}`);
  },
  RLE(cursor, count, { type }) {
    if (type !== 'BOOLEAN') throw new Error(`values of type ${type} have the encoding of booleans`);
    uint32(cursor, 'a list of booleans');
    readRuns(cursor, 1, count, 1, 'a list of booleans');
  },
  PLAIN_DICTIONARY: checkIndices,
  RLE_DICTIONARY: checkIndices,
  BYTE_STREAM_SPLIT(cursor, count, decoder) {
    take(cursor, count * widthOf(decoder), `a list of ${count} values`);
  },
  DELTA_BINARY_PACKED(cursor, count, { type }) {
    if (type !== 'INT32' && type !== 'INT64') throw new Error(`values of type ${type} have no differences`);
    if (count > 0) skipDeltas(cursor, count, type === 'INT32' ? 32 : 64);
  },
  DELTA_LENGTH_BYTE_ARRAY(cursor, count) {
    for (const [i, length] of readLengths(cursor, count, 'a value').entries())
      take(cursor, length, `value ${i}`);
  },
  DELTA_BYTE_ARRAY(cursor, count) {
    const prefixes = readLengths(cursor, count, 'a prefix');
    const suffixes = readLengths(cursor, count, 'a suffix');
    let [before, all] = [0, 0];
    for (let i = 0; i < count; i++) {
      if (prefixes[i]! > before)
        throw new Error(`value ${i} has ${prefixes[i]} bytes of the one before, which has ${before}`);
      take(cursor, suffixes[i]!, `value ${i}`);
      before = prefixes[i]! + suffixes[i]!;
      all += before;
      if (all > LONGEST_RECORD)
        throw new Error(`the values have more than ${LONGEST_RECORD} bytes; expected at most so many a page`);
    }
  },
};

function checkIndices(
  cursor: Cursor,
  count: number,
  { type }: ColumnDecoder,
  dictionary: DecodedArray | undefined,
): void {
  if (dictionary === undefined) throw new Error('the values are numbers of a dictionary that is not there');
  if (type === 'BOOLEAN') throw new Error('booleans have no dictionary');
  const width = cursor.bytes[take(cursor, 1, 'the width of numbers')]!;
  if (count === 0) return;
  readRuns(cursor, width, count, dictionary.length - 1, `a list of numbers of ${dictionary.length} values`);
}

/** Checks `count` values of a page. @throws Error for damaged ones, before the library decodes them */
export function checkValues(
  encoding: Encoding | undefined,
  cursor: Cursor,
  count: number,
  decoder: ColumnDecoder,
  dictionary?: DecodedArray,
): void {
  const check = encoding && CHECKS[encoding];
  if (check === undefined) throw new Error(`the encoding ${encoding ?? 'of its values'} is not known`);
  check(cursor, count, decoder, dictionary);
}
