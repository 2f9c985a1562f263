/** @file Sources of records: their contract, sources in memory, CSV and whole texts. */
import { z } from 'zod';
import { Configurable } from '../../hparams/index.js';
import { type CorpusFile, resolveFiles } from '../text/corpusFiles.js';
import { byteOf, utf8Start, utf8Text } from '../text/utf8.js';
import { type CsvFormat, csvRows } from './csvRows.js';
import { joinTables } from './joinedTables.js';
import { type DataRecord, memoryTable, type RecordTable, tableOf } from './recordTable.js';
import { ALL, openSubSplits, SPLIT_NAME } from './subSplits.js';
import { contentsDigest, unpackedTable } from './unpackedTable.js';
import { openWatched, type WatchedFile } from './watchedFile.js';

/** Base of all sources. A source of one's own extends `IterableSource`, or opens a table of its own. */
export abstract class BaseRecordSource extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** The names of the splits, in order. 'all' is all of them together. */
  get splitNames(): readonly string[] {
    return [ALL];
  }

  /** Opens one of `splitNames`. @throws InputError with the place of the error */
  protected abstract openSplit(name: string): RecordTable;

  /**
   * Opens the records of a split, or of parts of splits: `train[:90%]`, `train[1000:]+validation`.
   *
   * @throws InputError for a missing split, and with the place of errors
   */
  open(split: string = ALL): RecordTable {
    return openSubSplits(split, this.splitNames, this.constructor.name, (name) => this.openSplit(name));
  }
}

/** Base of sources that make their records, which stay in memory. */
export abstract class IterableSource extends BaseRecordSource.with({}) {
  static override readonly isAbstract = true;

  /** The records, in an order that is the same in every run: an array, or a generator. */
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
  mostUnpackedBytes: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe(
      'Most bytes of a compressed file when unpacked; null: the free space of the cache less a tenth.',
    ),
}) {
  static override readonly isAbstract = true;

  override get splitNames(): readonly string[] {
    return Object.keys(this.#splits);
  }

  /** Opens files, each with its name in messages. @throws InputError with the place of the error */
  protected abstract openFiles(files: readonly CorpusFile[]): RecordTable;

  protected override openSplit(name: string): RecordTable {
    const { mostUnpackedBytes } = this.hp;
    const bound = mostUnpackedBytes === null ? {} : { mostUnpackedBytes };
    return this.openFiles(resolveFiles(this.#splits[name]!).map((file) => ({ ...file, ...bound })));
  }

  /** A list alone is one split. */
  get #splits(): Readonly<Record<string, readonly string[]>> {
    const { files } = this.hp;
    return Array.isArray(files) ? { [ALL]: files } : (files as Record<string, string[]>);
  }
}

/** Smaller tables stay in memory, for reading them takes less than a second. */
const SMALLEST_UNPACKED = 16 * 2 ** 20;

/**
 * A CSV file's rows by column (RFC 4180): its first line names the columns, and all values are text. `\r\n`, `\n` and `\r` each
 * end a row outside quotes, and a file may have all of them.
 */
export class CsvSource extends BaseFileSource.with({
  delimiter: z.string().min(1).default(',').describe('Separator of values: a comma, a semicolon, a tab.'),
  columns: z
    .array(z.string())
    .min(1)
    .nullable()
    .default(null)
    .describe('Names of the columns of files without a header; null: the first line has them.'),
}) {
  protected override openFiles(files: readonly CorpusFile[]): RecordTable {
    return joinTables(files.map((file) => openWatched(file, (watched) => this.#tableOf(watched))));
  }

  #tableOf(file: WatchedFile): RecordTable {
    const { delimiter, columns } = this.hp;
    // All that rows follow from beside the file.
    const format: CsvFormat = { delimiter, columns };
    const rows = () => csvRows(file, format);
    const place = (line: number): string => `${file.name}:${line}`;
    const unpacked =
      file.size < SMALLEST_UNPACKED ? undefined : unpackedTable(file, ['CSV 2', format], rows, place);
    if (unpacked !== undefined) return unpacked;
    const parsed = Array.from(rows());
    file.close();
    return memoryTable(
      parsed.map(([record]) => record),
      (i) => place(parsed[i]![1]),
      [file.dataFile],
    );
  }
}

/** Whole text files: a record each, with its `text` and the `file`'s name. */
export class TextFileSource extends BaseFileSource.with({}) {
  protected override openFiles(files: readonly CorpusFile[]): RecordTable {
    return joinTables(files.map((file) => openWatched(file, textTable)));
  }
}

function textTable(file: WatchedFile): RecordTable {
  return {
    numRecords: 1,
    read() {
      const start = utf8Start(file.read(0, 4), file.path);
      const placeOf = (offset: number) => byteOf(file.path)(start + offset);
      return { text: utf8Text(file.read(start, file.size), placeOf), file: file.name };
    },
    place: () => `${file.name}:1`,
    files: [file.dataFile],
    get digest() {
      return contentsDigest(1, file);
    },
    close: () => file.close(),
  };
}
