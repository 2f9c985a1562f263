/** @file Pages of a Parquet column chunk, each checked as a whole before a library decodes it. */
import { crc32 } from 'node:zlib';
import type { DecodedArray, PageHeader } from 'hyparquet';
import { parquetHeader, readPage } from 'hyparquet/src/column.js';
import { convert } from 'hyparquet/src/convert.js';
import { getMaxDefinitionLevel, getMaxRepetitionLevel, isFlatColumn } from 'hyparquet/src/schema.js';
import { stated } from './columnFile.js';
import { type ColumnDecoder, type Cursor, checkValues, readRuns, take, uint32 } from './parquetEncodings.js';
import { endOfStruct } from './thriftStruct.js';
import { unpackedBytes } from './unpackedBytes.js';

/** A column's values in a row group. */
export interface Chunk {
  /** Its pages. */
  readonly bytes: Buffer;
  readonly decoder: ColumnDecoder;
  readonly numValues: number;
  /** Bytes of all pages when they are unpacked. */
  readonly unpackedSize: number;
}

/** A page that is unpacked, for the library to read as one without compression. */
interface Page {
  readonly header: PageHeader;
  readonly bytes: Uint8Array;
  /** Where its values begin, and how many there are, nulls left out. */
  readonly valuesAt: number;
  readonly numValues: number;
}

/** The values of a chunk, in arrays of pages; lists as the library nests them. @throws Error for damaged pages */
export function readPages(chunk: Chunk): DecodedArray[] {
  const { bytes, decoder } = chunk;
  const plain: ColumnDecoder = { ...decoder, codec: 'UNCOMPRESSED' };
  const arrays: DecodedArray[] = [];
  let dictionary: DecodedArray | undefined;
  let [at, numRead] = [0, 0];
  for (let p = 0; numRead < chunk.numValues; p++) {
    if (at >= bytes.length)
      throw new Error(`its pages have ${numRead} values; the file says ${chunk.numValues}`);
    const end = endOfStruct(bytes, at);
    const header = parquetHeader(readerOf(bytes, at));
    at = end + checkSizes(header, bytes.length - end, chunk.unpackedSize, p);
    const stored = bytes.subarray(end, at);
    if (header.crc !== undefined && header.crc >>> 0 !== crc32(stored))
      throw new Error(`page ${p} has another CRC-32 than the file says: it is damaged`);
    if (header.type === 'INDEX_PAGE') continue;
    const page = unpacked(header, stored, decoder, chunk.numValues - numRead);
    const isDictionary = header.type === 'DICTIONARY_PAGE';
    if (isDictionary && (dictionary !== undefined || numRead > 0))
      throw new Error(`page ${p} is a dictionary behind other pages`);
    const encoding = isDictionary ? 'PLAIN' : headOf(header).encoding;
    checkValues(encoding, { bytes: page.bytes, at: page.valuesAt }, page.numValues, decoder, dictionary);
    const last = arrays.at(-1);
    const { data } = readPage(readerOf(page.bytes, 0), page.header, plain, dictionary, last, 0);
    if (isDictionary) dictionary = convert(data!, plain);
    else {
      numRead += headOf(header).num_values;
      // A list may continue from the page before.
      if (data !== last && data !== undefined && data.length > 0) arrays.push(data);
    }
  }
  return arrays;
}

const readerOf = (bytes: Uint8Array, offset: number) => ({
  view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length),
  offset,
});

/** Description of a data page's values. @throws Error for other pages */
function headOf({ type, data_page_header, data_page_header_v2 }: PageHeader) {
  const head = type === 'DATA_PAGE_V2' ? data_page_header_v2 : data_page_header;
  if (head === undefined || !(type === 'DATA_PAGE_V2' || type === 'DATA_PAGE'))
    throw new Error('a page is none of data, and of no dictionary');
  return head;
}

/** @param left bytes behind the page's header. @returns those that the page takes */
function checkSizes(header: PageHeader, left: number, most: number, p: number): number {
  const { compressed_page_size: size, uncompressed_page_size: unpackedSize } = header;
  if (!(size >= 0 && size <= left))
    throw new Error(`page ${p} has ${stated(size)} bytes, of which ${left} are there`);
  if (!(unpackedSize >= 0 && unpackedSize <= most))
    throw new Error(`page ${p} has ${stated(unpackedSize)} bytes when unpacked, and all pages ${most}`);
  return size;
}

function unpacked(header: PageHeader, stored: Uint8Array, decoder: ColumnDecoder, left: number): Page {
  const whole = { ...header, compressed_page_size: header.uncompressed_page_size };
  const inside = (bytes: Uint8Array, length: number): Uint8Array =>
    decoder.codec === 'UNCOMPRESSED' ? exact(bytes, length) : unpackedBytes(decoder.codec, bytes, length);
  if (header.type === 'DICTIONARY_PAGE') {
    const count = header.dictionary_page_header?.num_values ?? -1;
    const bytes = inside(stored, header.uncompressed_page_size);
    // A value takes a bit at least.
    if (!(count >= 0 && count <= 8 * bytes.length))
      throw new Error(`a dictionary of ${stated(count)} values has ${bytes.length} bytes`);
    return { header: whole, bytes, valuesAt: 0, numValues: count };
  }
  const { num_values: count } = headOf(header);
  if (!(count >= 0 && count <= left))
    throw new Error(`a page of ${stated(count)} values, of which the column has ${left} left`);
  const v2 = header.data_page_header_v2;
  if (header.type === 'DATA_PAGE' || v2 === undefined) {
    const bytes = inside(stored, header.uncompressed_page_size);
    const cursor = { bytes, at: 0 };
    const numValues = levels(cursor, count, decoder, uint32);
    return { header: whole, bytes, valuesAt: cursor.at, numValues };
  }
  const lengths = [v2.repetition_levels_byte_length, v2.definition_levels_byte_length];
  const size = lengths[0]! + lengths[1]!;
  if (
    !(lengths[0]! >= 0 && lengths[1]! >= 0 && size <= Math.min(stored.length, header.uncompressed_page_size))
  )
    throw new Error(`levels of ${lengths.map(stated).join(' and ')} bytes in a page of ${stored.length}`);
  const values = stored.subarray(size);
  const length = header.uncompressed_page_size - size;
  const bytes = Buffer.concat([
    stored.subarray(0, size),
    v2.is_compressed === false ? exact(values, length) : inside(values, length),
  ]);
  const numValues = levels({ bytes, at: 0 }, count, decoder, () => lengths.shift()!, v2.num_rows);
  if (count - v2.num_nulls !== numValues)
    throw new Error(
      `a page of ${count} values has ${count - numValues} nulls; it says ${stated(v2.num_nulls)}`,
    );
  const head = { ...v2, is_compressed: false };
  return { header: { ...whole, data_page_header_v2: head }, bytes, valuesAt: size, numValues };
}

/** Bytes of a part alone, so that nothing reads on into the next ones. @throws Error where they are others than so many */
function exact(bytes: Uint8Array, length: number): Uint8Array {
  if (bytes.length === length) return Uint8Array.from(bytes);
  throw new Error(`a page of ${bytes.length} bytes says that it has ${length}`);
}

/**
 * Checks levels of repetition and definition.
 *
 * @param lengthOf bytes of the next ones. @param numRows the page's own number of rows, if it has one
 * @returns the number of values that are no nulls
 */
function levels(
  cursor: Cursor,
  count: number,
  { schemaPath }: ColumnDecoder,
  lengthOf: (cursor: Cursor, what: string) => number,
  numRows?: number,
): number {
  const read = (most: number, what: string): Uint32Array | undefined => {
    if (most === 0) {
      // Version 2 gives their number of bytes, too.
      if (numRows !== undefined) take(cursor, lengthOf(cursor, what), what);
      return undefined;
    }
    const length = lengthOf(cursor, what);
    const start = take(cursor, length, what);
    const own = { bytes: cursor.bytes.subarray(0, start + length), at: start };
    return readRuns(own, 32 - Math.clz32(most), count, most, what);
  };
  const repetitions = read(getMaxRepetitionLevel(schemaPath), 'a list of repetition levels');
  const most = getMaxDefinitionLevel(schemaPath);
  const definitions = read(most, 'a list of definition levels');
  const rows = repetitions?.reduce((sum, level) => sum + (level === 0 ? 1 : 0), 0) ?? count;
  if (numRows !== undefined && (isFlatColumn(schemaPath) || repetitions !== undefined) && rows !== numRows)
    throw new Error(`a page has ${rows} rows; it says ${stated(numRows)}`);
  return definitions?.reduce((sum, level) => sum + (level === most ? 1 : 0), 0) ?? count;
}
