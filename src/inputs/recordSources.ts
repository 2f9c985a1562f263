/** @file Sources of records: CSV and JSON Lines files, and classes that make them. */
import { parse } from 'csv-parse/sync';
import { z } from 'zod';
import { Configurable } from '../hparams/index.js';
import { readFiles, resolveFiles, type SourceFile } from './corpusFiles.js';
import type { DataFile } from './dataIdentity.js';
import { InputError } from './inputErrors.js';

/** A record: values by the names of their columns. */
export type DataRecord = Readonly<Record<string, unknown>>;

/** A record, and its place for messages: `data/a.csv:12`, or `record 3`. */
export interface PlacedRecord {
  readonly record: DataRecord;
  readonly place: string;
}

/** Records of a source, and the files that hold them. */
export interface Records {
  readonly records: readonly PlacedRecord[];
  readonly files: readonly DataFile[];
}

/** All records of an iterable. @throws InputError for what is no record */
export function recordsIn(records: Iterable<unknown>): PlacedRecord[] {
  return Array.from(records, placedRecord);
}

/** A record with its number as its place. @throws InputError for what is no record */
export function placedRecord(record: unknown, i: number): PlacedRecord {
  const place = `record ${i}`;
  if (typeof record === 'object' && record !== null && !Array.isArray(record))
    return { record: record as DataRecord, place };
  throw new InputError(
    `${place}: expected an object, { column: value, … }; got ${JSON.stringify(record)?.slice(0, 40)}`,
  );
}

/** Base of all sources. A source of one's own overrides `records`. */
export abstract class BaseRecordSource extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** The records, in an order that is the same in every run: an array, or what a generator yields. */
  protected abstract records(): Iterable<DataRecord>;

  /** Reads all records. @throws InputError with the place of what is wrong. */
  read(): Records {
    return { records: recordsIn(this.records()), files: [] };
  }
}

const files = z
  .array(z.string())
  .min(1)
  .describe("Paths, globs and 'pkg:<package>/<glob>' specs, in the order to read them.");

/** Files of records. */
abstract class FileSource extends BaseRecordSource.with({ files }) {
  static override readonly isAbstract = true;

  /** The records of a file, with the line on which each begins. @throws InputError */
  protected abstract parse(file: SourceFile, text: string): Iterable<readonly [DataRecord, line: number]>;

  protected override *records(): Iterable<DataRecord> {
    for (const { record } of this.read().records) yield record;
  }

  override read(): Records {
    const read = readFiles(resolveFiles(this.hp.files));
    const records = read.flatMap((file) =>
      Array.from(this.parse(file, textOf(file)), ([record, line]) => ({
        record,
        place: `${file.name}:${line}`,
      })),
    );
    return { records, files: read.map(({ name, path, bytes }) => ({ name, path, size: bytes.length })) };
  }
}

/** The text of a UTF-8 file, without a byte order mark. @throws InputError */
function textOf({ path, bytes }: SourceFile): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new InputError(`${path} is not UTF-8 text.`, { cause: error });
  }
}

/** A CSV file's rows by column (RFC 4180): its first line names the columns, and all values are text. */
export class CsvSource extends FileSource.with({
  delimiter: z.string().min(1).default(',').describe('What separates values: a comma, a semicolon, a tab.'),
  columns: z
    .array(z.string())
    .min(1)
    .nullable()
    .default(null)
    .describe('Names of the columns of files without a header; null: the first line has them.'),
}) {
  protected override parse({ path }: SourceFile, text: string): [DataRecord, number][] {
    const { delimiter, columns } = this.hp;
    try {
      const rows: { record: DataRecord; info: { lines: number } }[] = parse(text, {
        columns: columns === null ? (header: string[]) => distinct(header, path) : [...columns],
        delimiter,
        info: true,
        skip_empty_lines: true,
      }) as never;
      return rows.map(({ record, info }) => [record, info.lines]);
    } catch (error) {
      if (error instanceof InputError) throw error;
      throw new InputError(`${path} is not a CSV file of the kind expected: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
}

function distinct(header: readonly string[], path: string): string[] {
  const names = header.map((name) => name.trim());
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice === undefined) return names;
  throw new InputError(`${path}:1: two columns are called '${twice}'. Give each its own name.`);
}

/** Objects of JSON Lines files, one a line. */
export class JsonLinesSource extends FileSource {
  protected override *parse({ path }: SourceFile, text: string): Iterable<[DataRecord, number]> {
    for (const [i, line] of text.split('\n').entries()) {
      if (line.trim() !== '') yield [objectOf(line, `${path}:${i + 1}`), i + 1];
    }
  }
}

function objectOf(line: string, place: string): DataRecord {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new InputError(`${place}: not JSON: ${(error as Error).message}`, { cause: error });
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as DataRecord;
  throw new InputError(`${place}: expected an object, {"column": value, …}; got ${line.slice(0, 40)}`);
}
