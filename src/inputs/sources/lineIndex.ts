/** @file Index of a file's lines: where each begins, found by one scan and kept in the cache. */
import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { readFully } from '../../files/index.js';
import { InputError } from '../inputErrors.js';
import { cachedFile, type DataCache } from './dataCache.js';
import { LONGEST_RECORD, OffsetIndex, OffsetWriter, type ReadAt } from './offsetIndex.js';

/** Behind the offsets: numbers of records, of lines skipped, and the file's CRC-32, a float64 each. */
const FOOTER_BYTES = 24;

/** Smaller files are scanned each time, for that takes milliseconds. */
const SMALLEST_KEPT = 16 * 2 ** 20;
const CACHE: DataCache = { name: 'lines', mostBytes: 2 ** 30 };

const CHUNK_BYTES = 2 ** 20;
const NEWLINE = 10;
const SPACE = 32;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Hands on the index of an open file, part by part. @throws InputError for a line over the limit, with its number and first byte */
function scan(file: number, name: string, skipsBlank: boolean, append: (bytes: Uint8Array) => void): void {
  const index = new OffsetWriter(append);
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let [checksum, position, start, end, line, numSkipped] = [0, 0, 0, 0, 1, 0];
  let isBlank = true;
  const finishLine = (at: number): void => {
    if (at - start > LONGEST_RECORD)
      throw new InputError(
        `${name}:${line}: the line from byte ${start} on has ${at - start} bytes; expected at most ${LONGEST_RECORD}. Split it, or store the records as TFRecord.`,
      );
    if (skipsBlank && isBlank) numSkipped++;
    else {
      index.add(start);
      end = at;
    }
    line++;
  };
  for (;;) {
    const length = readFully(file, chunk, position);
    if (length === 0) break;
    const bytes = chunk.subarray(0, length);
    checksum = crc32(bytes, checksum);
    let from = position === 0 && BYTE_ORDER_MARK.every((byte, i) => bytes[i] === byte) ? 3 : 0;
    if (position === 0) start = from;
    while (from < length) {
      const newline = bytes.indexOf(NEWLINE, from);
      const to = newline < 0 ? length : newline;
      while (isBlank && from < to) isBlank = bytes[from++]! <= SPACE;
      if (newline < 0) break;
      finishLine(position + newline);
      start = position + newline + 1;
      from = newline + 1;
      isBlank = true;
    }
    position += length;
  }
  if (start < position) finishLine(position);
  const footer = Buffer.alloc(FOOTER_BYTES);
  for (const [i, number] of [index.finish(end), numSkipped, checksum].entries())
    footer.writeDoubleLE(number, 8 * i);
  append(footer);
}

/** Where the lines of a file are. */
export interface LineIndex {
  readonly numRecords: number;
  /** Number of blank lines that are no records. */
  readonly numSkipped: number;
  /** CRC-32 of the file. */
  readonly checksum: number;
  /** The bytes from record `i` up to the next one. */
  extent(i: number): { readonly start: number; readonly end: number };
  close(): void;
}

/**
 * The index of an open file's lines, from the cache or by a scan.
 *
 * @param key what the index depends on: the file's path, size and time.
 */
export function lineIndex(
  file: number,
  name: string,
  size: number,
  key: string,
  skipsBlank: boolean,
): LineIndex {
  const kept = size < SMALLEST_KEPT ? undefined : keptIndex(file, name, key, skipsBlank);
  if (kept !== undefined) return kept;
  const parts: Buffer[] = [];
  scan(file, name, skipsBlank, (bytes) => parts.push(Buffer.from(bytes)));
  const all = Buffer.concat(parts);
  return indexOf(
    (position, target) => target.set(all.subarray(position, position + target.length)),
    all.length,
  );
}

/** The index as a file of the cache, so that it takes no memory; undefined where the cache can't be written. */
function keptIndex(file: number, name: string, key: string, skipsBlank: boolean): LineIndex | undefined {
  try {
    const path = cachedFile(CACHE, ['lines 2', key, skipsBlank], (to) => {
      const written = openSync(to, 'w');
      try {
        scan(file, name, skipsBlank, (bytes) => {
          for (let done = 0; done < bytes.length; ) done += writeSync(written, bytes, done);
        });
      } finally {
        closeSync(written);
      }
    });
    const index = openSync(path, 'r');
    return indexOf(
      (position, target) => void readFully(index, target, position),
      fstatSync(index).size,
      () => closeSync(index),
    );
  } catch (error) {
    if (error instanceof InputError) throw error;
    return undefined;
  }
}

function indexOf(read: ReadAt, size: number, close = () => {}): LineIndex {
  const footer = Buffer.alloc(FOOTER_BYTES);
  read(size - FOOTER_BYTES, footer);
  const offsets = new OffsetIndex(read);
  return {
    numRecords: footer.readDoubleLE(0),
    numSkipped: footer.readDoubleLE(8),
    checksum: footer.readDoubleLE(16),
    extent: (i) => offsets.extent(i),
    close,
  };
}
