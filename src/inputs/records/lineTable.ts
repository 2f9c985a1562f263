/** @file Tables of the lines of files, read where they are. */
import { crc32 } from 'node:zlib';
import type { DataFile } from '../dataIdentity.js';
import { InputError } from '../inputErrors.js';
import type { CorpusFile } from '../text/corpusFiles.js';
import { byteOf, utf8Start, utf8Text } from '../text/utf8.js';
import { joinTables } from './joinedTables.js';
import { LONGEST_RECORD, type OffsetWriter } from './offsetIndex.js';
import { type RecordIndex, recordIndex, type Scanned } from './recordIndex.js';
import type { DataRecord, RecordTable } from './recordTable.js';
import { openWatched, type WatchedFile } from './watchedFile.js';

const CHUNK_BYTES = 2 ** 20;
const NEWLINE = 10;
const SPACE = 32;

/** The record of a line. @throws InputError with the line's place */
type ParseLine = (text: string, place: () => string) => DataRecord;

/**
 * The lines of files, which must be UTF-8. A file may neither change nor vanish while the table is open.
 *
 * @param skipsBlank whether lines of nothing but white space are no records.
 * @throws InputError for files that cannot be read.
 */
export function lineTable(files: readonly CorpusFile[], skipsBlank: boolean, parse: ParseLine): RecordTable {
  return joinTables(
    files.map((file) => openWatched(file, (watched) => new LineTable(watched, skipsBlank, parse))),
  );
}

/** The lines of one file. */
class LineTable implements RecordTable {
  readonly numRecords: number;
  readonly files: readonly DataFile[];
  readonly digest: string;
  readonly #index: RecordIndex;

  constructor(
    private readonly file: WatchedFile,
    skipsBlank: boolean,
    private readonly parse: ParseLine,
  ) {
    const format = `lines 2${skipsBlank ? ', blank ones left out' : ''}`;
    this.#index = recordIndex(file, format, (starts) => scanLines(file, skipsBlank, starts));
    this.numRecords = this.#index.numRecords;
    this.digest = this.#index.digest;
    this.files = [file.dataFile];
  }

  read(i: number): DataRecord {
    return this.parse(this.#textOf(i), () => this.place(i));
  }

  #textOf(i: number): string {
    const { start, end } = this.#index.extent(i);
    const bytes = this.file.read(start, end);
    const newline = bytes.indexOf(NEWLINE);
    const to = newline < 0 ? bytes.length : newline;
    const line = bytes.subarray(0, bytes[to - 1] === 13 ? to - 1 : to);
    return utf8Text(line, (offset) => byteOf(this.place(i))(start + offset));
  }

  /** Name and line; blank lines that are no records count as lines. */
  place(i: number): string {
    const { name } = this.file;
    return `${name}:${this.#index.numSkipped === 0 ? i + 1 : this.#linesBefore(this.#index.extent(i).start) + 1}`;
  }

  #linesBefore(position: number): number {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    let count = 0;
    for (let at = 0; at < position; ) {
      const length = this.file.scan(chunk.subarray(0, Math.min(chunk.length, position - at)), at);
      if (length === 0) break;
      for (let i = 0; i < length; i++) if (chunk[i] === NEWLINE) count++;
      at += length;
    }
    return count;
  }

  close(): void {
    this.#index.close();
    this.file.close();
  }
}

/** @throws InputError for a line over the limit, with its number and first byte, and for UTF-16 */
function scanLines(file: WatchedFile, skipsBlank: boolean, starts: OffsetWriter): Scanned {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let [checksum, position, start, end, line, numSkipped] = [0, 0, 0, 0, 1, 0];
  let isBlank = true;
  const finishLine = (at: number): void => {
    if (at - start > LONGEST_RECORD)
      throw new InputError(
        `${file.name}:${line}: the line from byte ${start} on has ${at - start} bytes; expected at most ${LONGEST_RECORD}. Split it, or store the records as TFRecord.`,
      );
    if (skipsBlank && isBlank) numSkipped++;
    else {
      starts.add(start);
      end = at;
    }
    line++;
  };
  for (;;) {
    const length = file.scan(chunk, position);
    if (length === 0) break;
    const bytes = chunk.subarray(0, length);
    checksum = crc32(bytes, checksum);
    let from = position === 0 ? utf8Start(bytes, file.path) : 0;
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
  return { end, numSkipped, checksum };
}
