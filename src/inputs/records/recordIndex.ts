/** @file Index of a file's records: where each begins, found by one scan and kept in the cache. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { readFully, writeFully } from '../../files/index.js';
import { InputError } from '../inputErrors.js';
import { cachedFile, type DataCache } from './dataCache.js';
import { OffsetIndex, OffsetWriter, type ReadAt } from './offsetIndex.js';
import { fileDigest } from './recordTable.js';
import type { WatchedFile } from './watchedFile.js';

/** Behind the offsets: numbers of records and of skipped ones, and the file's CRC-32, a float64 each. */
const FOOTER_BYTES = 24;

/** Smaller files are scanned each time, for that takes milliseconds. */
const SMALLEST_KEPT = 16 * 2 ** 20;
const CACHE: DataCache = { name: 'indexes', mostBytes: 2 ** 30 };

/** Where the records of a file are. */
export interface RecordIndex {
  readonly numRecords: number;
  /** Number of blank lines and the like that are no records. */
  readonly numSkipped: number;
  /** Equal for equal files; hexadecimal. */
  readonly digest: string;
  /** The bytes from record `i` up to the next one. */
  extent(i: number): { readonly start: number; readonly end: number };
  close(): void;
}

/** Results of a scan beside the starts of the records. */
export interface Scanned {
  /** Where the last record ends. */
  readonly end: number;
  readonly numSkipped: number;
  /** CRC-32 of the file. */
  readonly checksum: number;
}

/** Adds the start of each record of a file. @throws InputError for a file of another format */
export type ScanRecords = (starts: OffsetWriter) => Scanned;

/**
 * The index of an open file, from the cache or by a scan. A large file's takes no memory.
 *
 * @param format what the index depends on beside the file.
 */
export function recordIndex(file: WatchedFile, format: string, scan: ScanRecords): RecordIndex {
  const kept = file.size < SMALLEST_KEPT ? undefined : keptIndex(file, format, scan);
  if (kept !== undefined) return kept;
  const parts: Buffer[] = [];
  write(scan, (bytes) => parts.push(Buffer.from(bytes)));
  const all = Buffer.concat(parts);
  return indexOf(
    (position, target) => target.set(all.subarray(position, position + target.length)),
    all.length,
  );
}

/** The index as a file of the cache; undefined where the cache can't be written. */
function keptIndex(file: WatchedFile, format: string, scan: ScanRecords): RecordIndex | undefined {
  try {
    const kept = cachedFile(CACHE, file, [format], (to) => {
      const written = openSync(to, 'w');
      try {
        write(scan, (bytes) => writeFully(written, bytes));
      } finally {
        closeSync(written);
      }
    });
    const index = openSync(kept, 'r');
    const read: ReadAt = (position, target) => void readFully(index, target, position);
    return indexOf(read, fstatSync(index).size, () => closeSync(index));
  } catch (error) {
    if (error instanceof InputError) throw error;
    return undefined;
  }
}

function write(scan: ScanRecords, append: (bytes: Uint8Array) => void): void {
  const starts = new OffsetWriter(append);
  const { end, numSkipped, checksum } = scan(starts);
  const footer = Buffer.alloc(FOOTER_BYTES);
  for (const [i, number] of [starts.finish(end), numSkipped, checksum].entries())
    footer.writeDoubleLE(number, 8 * i);
  append(footer);
}

function indexOf(read: ReadAt, size: number, close = () => {}): RecordIndex {
  const footer = Buffer.alloc(FOOTER_BYTES);
  read(size - FOOTER_BYTES, footer);
  const numRecords = footer.readDoubleLE(0);
  const offsets = new OffsetIndex(read);
  return {
    numRecords,
    numSkipped: footer.readDoubleLE(8),
    digest: fileDigest(numRecords, footer.readDoubleLE(16)),
    extent: (i) => offsets.extent(i),
    close,
  };
}
