/** @file Tables of the lines of files, read where they are. */
import { closeSync, type Stats, statSync } from 'node:fs';
import { openRegularFile, readFully } from '../../files/index.js';
import type { CorpusFile } from '../corpusFiles.js';
import type { DataFile } from '../dataIdentity.js';
import { FileError, InputError } from '../inputErrors.js';
import { byteOf, utf8Text } from '../utf8.js';
import { joinTables } from './joinedTables.js';
import { type LineIndex, lineIndex } from './lineIndex.js';
import type { DataRecord, RecordTable } from './recordTable.js';

const NEWLINE = 10;

/** The record of a line. @throws InputError with the line's place */
type ParseLine = (text: string, place: () => string) => DataRecord;

/**
 * The lines of files, which must be UTF-8. A file may neither change nor vanish while the table is open.
 *
 * @param skipsBlank whether lines of nothing but white space are no records.
 * @throws InputError for files that cannot be read.
 */
export function lineTable(files: readonly CorpusFile[], skipsBlank: boolean, parse: ParseLine): RecordTable {
  return joinTables(files.map((file) => new LineFile(file, skipsBlank, parse)));
}

/** The lines of one file. */
class LineFile implements RecordTable {
  readonly numRecords: number;
  readonly files: readonly DataFile[];
  readonly digest: string;
  readonly #status: Stats;
  readonly #index: LineIndex;
  readonly #descriptor: number;

  constructor(
    private readonly file: CorpusFile,
    skipsBlank: boolean,
    private readonly parse: ParseLine,
  ) {
    const { path, name } = file;
    try {
      this.#descriptor = openRegularFile(path);
      this.#status = statSync(path);
      const { size, mtimeMs } = this.#status;
      this.#index = lineIndex(
        this.#descriptor,
        name,
        size,
        JSON.stringify([path, size, mtimeMs]),
        skipsBlank,
      );
    } catch (error) {
      if (error instanceof InputError) throw error;
      throw new InputError(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
    }
    const { numRecords, checksum } = this.#index;
    this.numRecords = numRecords;
    this.files = [{ ...file, size: this.#status.size }];
    this.digest = `${numRecords}-${checksum.toString(16)}`;
  }

  read(i: number): DataRecord {
    return this.parse(this.#textOf(i), () => this.place(i));
  }

  #textOf(i: number): string {
    const { start, end } = this.#index.extent(i);
    this.#checkUnchanged(start);
    const bytes = Buffer.allocUnsafe(end - start);
    const length = readFully(this.#descriptor, bytes, start);
    if (length < bytes.length) this.#checkUnchanged(start);
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
    const chunk = Buffer.allocUnsafe(2 ** 20);
    let count = 0;
    for (let at = 0; at < position; ) {
      const length = readFully(
        this.#descriptor,
        chunk.subarray(0, Math.min(chunk.length, position - at)),
        at,
      );
      if (length === 0) break;
      for (let i = 0; i < length; i++) if (chunk[i] === NEWLINE) count++;
      at += length;
    }
    return count;
  }

  /** @throws InputError for a file that is gone, or is another one than was indexed */
  #checkUnchanged(position: number): void {
    const { path } = this.file;
    const now = statSync(path, { throwIfNoEntry: false });
    const what = changeOf(this.#status, now);
    if (what === undefined) return;
    throw new FileError(
      `${path}, byte ${position}: ${what} while it was being read. Bring back what it was, or start again to read what it is now.`,
    );
  }

  close(): void {
    this.#index.close();
    closeSync(this.#descriptor);
  }
}

function changeOf(before: Stats, now: Stats | undefined): string | undefined {
  if (now === undefined) return 'the file vanished';
  if (now.size < before.size) return `the file shrank from ${before.size} to ${now.size} bytes`;
  if (now.size > before.size) return `the file grew from ${before.size} to ${now.size} bytes`;
  return now.mtimeMs === before.mtimeMs && now.ino === before.ino ? undefined : 'the file changed';
}
