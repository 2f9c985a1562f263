/** @file Index of a file's lines: where each begins, found by one scan and kept in the cache. */
import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { cachePath } from '../../compiler/native/toolchain/cacheFolder.js';
import { makeDirectory, readFully, removeTemporaries, writeWhole } from '../../files/index.js';
import { InputError } from '../inputErrors.js';

/** Most bytes of a line. */
const LONGEST_LINE = 256 * 2 ** 20;

/** Starts are kept in blocks: a float64, the first line's start, then a uint32 for each line, how far after it that line starts. */
const LINES_OF_BLOCK = 16;
const BLOCK_BYTES = 8 + 4 * LINES_OF_BLOCK;
/** Before the blocks: numbers of records, of lines skipped, and the file's CRC-32, a float64 each. */
const HEADER_BYTES = 24;

/** Smaller files are scanned each time, for that takes milliseconds. */
const SMALLEST_KEPT = 16 * 2 ** 20;
/** All indexes together may take this much of the cache. */
const CACHE_BYTES = 2 ** 30;

const CHUNK_BYTES = 2 ** 20;
const NEWLINE = 10;
const SPACE = 32;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Collects starts into blocks. */
class IndexWriter {
  #bytes = Buffer.alloc(2 ** 16);
  #length = HEADER_BYTES;
  #base = 0;
  count = 0;

  add(start: number): void {
    const place = this.count++ % LINES_OF_BLOCK;
    if (place === 0) {
      this.#reserve(BLOCK_BYTES);
      this.#base = start;
      this.#length = this.#bytes.writeDoubleLE(start, this.#length);
    }
    this.#length = this.#bytes.writeUInt32LE(start - this.#base, this.#length);
  }

  /** The index, with an end of the last record in the place of one more. */
  finish(end: number, numSkipped: number, checksum: number): Buffer {
    const numRecords = this.count;
    this.add(end);
    this.#bytes.writeDoubleLE(numRecords, 0);
    this.#bytes.writeDoubleLE(numSkipped, 8);
    this.#bytes.writeDoubleLE(checksum, 16);
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const grown = Buffer.alloc(2 * this.#bytes.length);
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
}

/** The index of an open file. @throws InputError for a line over the limit, with its number and first byte */
function scan(file: number, name: string, skipsBlank: boolean): Buffer {
  const index = new IndexWriter();
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let [checksum, position, start, end, line, numSkipped] = [0, 0, 0, 0, 1, 0];
  let isBlank = true;
  const finishLine = (at: number): void => {
    if (at - start > LONGEST_LINE)
      throw new InputError(
        `${name}:${line}: the line from byte ${start} on has ${at - start} bytes; expected at most ${LONGEST_LINE}. Split it, or store the records as TFRecord.`,
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
  return index.finish(end, numSkipped, checksum);
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
  if (size < SMALLEST_KEPT) return indexOf(fromMemory(scan(file, name, skipsBlank)));
  const folder = join(cachePath(process.env), 'lines');
  const digest = createHash('sha256')
    .update(JSON.stringify(['lines 1', key, skipsBlank]))
    .digest('hex');
  const path = join(folder, `${digest.slice(0, 32)}.index`);
  return indexOf(kept(path) ?? keep(folder, path, scan(file, name, skipsBlank)));
}

/** Bytes of an index: of a file, so that the index of a large corpus takes no memory, or in memory. */
interface IndexBytes {
  read(position: number, target: Buffer): void;
  close(): void;
}

const fromMemory = (bytes: Buffer): IndexBytes => ({
  read: (position, target) => void bytes.copy(target, 0, position),
  close() {},
});

function kept(path: string): IndexBytes | undefined {
  try {
    const file = openSync(path, 'r');
    const now = new Date();
    utimesSync(path, now, now);
    return {
      read: (position, target) => void readFully(file, target, position),
      close: () => closeSync(file),
    };
  } catch {
    return undefined;
  }
}

/** Keeps an index for later runs, where the cache can be written. */
function keep(folder: string, path: string, bytes: Buffer): IndexBytes {
  try {
    makeDirectory(folder);
    removeTemporaries(folder);
    writeWhole(path, bytes);
    dropOld(folder, path);
  } catch {
    return fromMemory(bytes);
  }
  return kept(path) ?? fromMemory(bytes);
}

/** Removes the indexes that were not used for longest, until the others fit. */
function dropOld(folder: string, newest: string): void {
  const files = readdirSync(folder)
    .map((name) => join(folder, name))
    .flatMap((path) => {
      const status = statSync(path, { throwIfNoEntry: false });
      return status === undefined || path === newest
        ? []
        : [{ path, size: status.size, used: status.mtimeMs }];
    })
    .sort((a, b) => b.used - a.used);
  let bytes = statSync(newest).size;
  for (const { path, size } of files) {
    bytes += size;
    if (bytes > CACHE_BYTES) rmSync(path, { force: true });
  }
}

function indexOf(bytes: IndexBytes): LineIndex {
  const header = Buffer.alloc(HEADER_BYTES);
  bytes.read(0, header);
  // A block, and the start of the next one.
  const block = Buffer.alloc(BLOCK_BYTES + 8);
  return {
    numRecords: header.readDoubleLE(0),
    numSkipped: header.readDoubleLE(8),
    checksum: header.readDoubleLE(16),
    extent(i) {
      const place = i % LINES_OF_BLOCK;
      bytes.read(HEADER_BYTES + ((i - place) / LINES_OF_BLOCK) * BLOCK_BYTES, block);
      const base = block.readDoubleLE(0);
      const start = base + block.readUInt32LE(8 + 4 * place);
      const isLast = place === LINES_OF_BLOCK - 1;
      return {
        start,
        end: isLast ? block.readDoubleLE(BLOCK_BYTES) : base + block.readUInt32LE(12 + 4 * place),
      };
    },
    close: () => bytes.close(),
  };
}
