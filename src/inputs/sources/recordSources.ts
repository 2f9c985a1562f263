/** @file Sources of records: their contract, sources in memory, CSV and whole text files. */
import { parse } from 'csv-parse/sync';
import { z } from 'zod';
import { Configurable } from '../../hparams/index.js';
import { type CorpusFile, readFiles, resolveFiles, type SourceFile } from '../corpusFiles.js';
import { InputError } from '../inputErrors.js';
import { byteOf, utf8Text } from '../utf8.js';
import { type DataRecord, memoryTable, type RecordTable, tableOf } from './recordTable.js';
import { ALL, openSubSplits, SPLIT_NAME } from './subSplits.js';

/** Base of all sources. A source of one's own extends `IterableSource`, or opens a table of its own. */
export abstract class BaseRecordSource extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** The names of the splits, in order. 'all' is all of them together. */
  get splitNames(): readonly string[] {
    return [ALL];
  }

  /** Opens one of `splitNames`. @throws InputError with the place of what is wrong */
  protected abstract openSplit(name: string): RecordTable;

  /**
   * Opens the records of a split, or of parts of splits: `train[:90%]`, `train[1000:]+validation`.
   *
   * @throws InputError for a split that there is not, and with the place of what is wrong
   */
  open(split: string = ALL): RecordTable {
    return openSubSplits(split, this.splitNames, this.constructor.name, (name) => this.openSplit(name));
  }
}

/** Base of sources that make their records, which stay in memory. */
export abstract class IterableSource extends BaseRecordSource.with({}) {
  static override readonly isAbstract = true;

  /** The records, in an order that is the same in every run: an array, or what a generator yields. */
  protected abstract records(): Iterable<DataRecord>;

  protected override openSplit(): RecordTable {
    return tableOf(this.records());
  }
}

const files = z.array(z.string()).min(1);

/** Base of sources of files. */
export abstract class BaseFileSource extends BaseRecordSource.with({
  files: z
    .union([
      files,
      z
        .record(z.string().regex(SPLIT_NAME), files)
        .refine((splits) => Object.keys(splits).length > 0, { error: 'expected at least one split' })
        .refine((splits) => !Object.hasOwn(splits, ALL), {
          error: `'${ALL}' is the name of all splits together`,
        }),
    ])
    .describe(
      "Paths, globs and 'pkg:<package>/<glob>' specs, in the order to read them; or such a list for each split by its name.",
    ),
}) {
  static override readonly isAbstract = true;

  override get splitNames(): readonly string[] {
    return Object.keys(this.#splits);
  }

  /** Opens files, each with the name to call it by. @throws InputError with the place of what is wrong */
  protected abstract openFiles(files: readonly CorpusFile[]): RecordTable;

  protected override openSplit(name: string): RecordTable {
    return this.openFiles(resolveFiles(this.#splits[name]!));
  }

  /** A list alone is one split. */
  get #splits(): Readonly<Record<string, readonly string[]>> {
    const { files } = this.hp;
    return Array.isArray(files) ? { [ALL]: files } : (files as Record<string, string[]>);
  }
}

/** Files whose records stay in memory. */
abstract class FileSource extends BaseFileSource.with({}) {
  static override readonly isAbstract = true;

  /** The records of a file, with the line on which each begins. @throws InputError */
  protected abstract parse(file: SourceFile, text: string): Iterable<readonly [DataRecord, line: number]>;

  protected override openFiles(files: readonly CorpusFile[]): RecordTable {
    const read = readFiles(files);
    const parsed = read.flatMap((file) =>
      Array.from(this.parse(file, textOf(file)), ([record, line]) => ({ record, name: file.name, line })),
    );
    return memoryTable(
      parsed.map(({ record }) => record),
      (i) => `${parsed[i]!.name}:${parsed[i]!.line}`,
      read.map(({ name, path, bytes }) => ({ name, path, size: bytes.length })),
    );
  }
}

/** The text of a UTF-8 file, without a byte order mark. @throws InputError */
function textOf({ path, bytes }: SourceFile): string {
  return utf8Text(bytes, byteOf(path)).replace(/^\uFEFF/, '');
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

/** Whole text files: a record each, with its `text` and the `file`'s name. */
export class TextFileSource extends FileSource {
  protected override parse({ name }: SourceFile, text: string): [DataRecord, number][] {
    return [[{ text, file: name }, 1]];
  }
}
