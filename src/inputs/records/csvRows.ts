/** @file Rows of CSV files, a megabyte at a time. */
import { CsvError, parse } from 'csv-parse/sync';
import { InputError } from '../inputErrors.js';
import { checkUtf8 } from '../text/utf8.js';
import { repeated } from './columnFile.js';
import { csvParts, lineOf } from './csvParts.js';
import type { DataRecord } from './recordTable.js';
import type { WatchedFile } from './watchedFile.js';

/** How a file is written. */
export interface CsvFormat {
  readonly delimiter: string;
  /** Names of the columns; null: the first line has them. */
  readonly columns: readonly string[] | null;
}

/** A row, and the line on which it begins. */
type Row = readonly [DataRecord, line: number];

/** Each ends a row outside of quotes, in any mixture; the longest comes first. */
const LINE_ENDS = ['\r\n', '\n', '\r'];

/** The rows of a file, read about `chunkBytes` at a time. @throws InputError with the place of a malformed row */
export function* csvRows(
  file: WatchedFile,
  { delimiter, columns }: CsvFormat,
  chunkBytes = 2 ** 20,
): Generator<Row> {
  let names = columns;
  for (const part of csvParts(file, delimiter, chunkBytes)) {
    const { bytes, position, lines } = part;
    checkUtf8(bytes, (offset) => `${file.path}:${lineOf(part, offset)}, byte ${position + offset}`);
    const numHeaders = names === null ? 1 : 0;
    const header = (found: string[]): readonly string[] => {
      names = distinct(found, `${file.path}:${lines[0]}`);
      return names;
    };
    let records: DataRecord[];
    try {
      records = parse(bytes, {
        columns: (names === null ? header : [...names]) as string[],
        delimiter,
        record_delimiter: LINE_ENDS,
        skip_empty_lines: true,
      }) as DataRecord[];
    } catch (error) {
      if (!(error instanceof CsvError)) throw error;
      // The parser counts lines again in each part, and one that ends in both characters within quotes as two.
      const line = lines[(error.records as number) + numHeaders] ?? lines.at(-1);
      const problem = error.message.replace(/ line \d+/, ` line ${line}`);
      throw new InputError(`${file.path} is not a CSV file of the kind expected: ${problem}`, {
        cause: error,
      });
    }
    for (const [r, record] of records.entries()) yield [record, lines[r + numHeaders]!];
  }
}

/** @throws InputError for two columns of one name */
function distinct(header: readonly string[], place: string): string[] {
  const names = header.map((name) => name.trim());
  const twice = repeated(names);
  if (twice === undefined) return names;
  throw new InputError(`${place}: two columns are called '${twice}'. Give each its own name.`);
}
