/** @file Rows of CSV files, a megabyte at a time. */
import { parse } from 'csv-parse/sync';
import { InputError } from '../inputErrors.js';
import { byteOf, utf8Text } from '../utf8.js';
import type { DataRecord } from './recordTable.js';
import type { WatchedFile } from './watchedFile.js';

/** How a file is written. */
export interface CsvFormat {
  readonly delimiter: string;
  /** Names of the columns; null: the first line has them. */
  readonly columns: readonly string[] | null;
}

const QUOTE = 34;
const NEWLINE = 10;

/** A row, and the line on which it ends. */
type Row = readonly [DataRecord, line: number];

/** The rows of a file, of which about `chunkBytes` are read at once. @throws InputError with the place of what is no row */
export function* csvRows(
  file: WatchedFile,
  { delimiter, columns }: CsvFormat,
  chunkBytes = 2 ** 20,
): Generator<Row> {
  let names = columns;
  let linesBefore = 0;
  for (const { bytes, from } of parts(file, chunkBytes)) {
    const text = utf8Text(bytes, (offset) => byteOf(file.path)(from + offset)).replace(
      from === 0 ? /^\uFEFF/ : '',
      '',
    );
    const header = (found: string[]): readonly string[] => {
      names = distinct(found, file.path);
      return names;
    };
    let rows: { record: DataRecord; info: { lines: number } }[];
    try {
      rows = parse(text, {
        columns: (names === null ? header : [...names]) as string[],
        delimiter,
        info: true,
        skip_empty_lines: true,
      }) as never;
    } catch (error) {
      if (error instanceof InputError) throw error;
      const problem = (error as Error).message.replace(
        / line (\d+)/,
        (_, line) => ` line ${linesBefore + Number(line)}`,
      );
      throw new InputError(`${file.path} is not a CSV file of the kind expected: ${problem}`, {
        cause: error,
      });
    }
    for (const { record, info } of rows) yield [record, linesBefore + info.lines];
    linesBefore += countOf(NEWLINE, bytes);
  }
}

/** The bytes of a file in parts of whole rows: those end at newlines that stand in no quotes. */
function* parts(
  file: WatchedFile,
  chunkBytes: number,
): Generator<{ readonly bytes: Buffer; readonly from: number }> {
  let rest: Buffer = Buffer.alloc(0);
  let from = 0;
  for (let at = 0; at < file.size; ) {
    const chunk = file.read(at, Math.min(at + chunkBytes, file.size));
    if (chunk.length === 0) break;
    at += chunk.length;
    const bytes = Buffer.concat([rest, chunk]);
    const end = at >= file.size ? bytes.length : endOfRows(bytes);
    if (end > 0) yield { bytes: bytes.subarray(0, end), from };
    from += end;
    rest = bytes.subarray(end);
  }
}

/** Where the last whole row ends. */
function endOfRows(bytes: Buffer): number {
  let isQuoted = false;
  let end = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) isQuoted = !isQuoted;
    else if (byte === NEWLINE && !isQuoted) end = at + 1;
  }
  return end;
}

function countOf(wanted: number, bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if (byte === wanted) count++;
  return count;
}

/** @throws InputError for two columns of one name */
function distinct(header: readonly string[], path: string): string[] {
  const names = header.map((name) => name.trim());
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice === undefined) return names;
  throw new InputError(`${path}:1: two columns are called '${twice}'. Give each its own name.`);
}
