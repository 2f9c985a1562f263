/** @file Column files, whose records are stored in blocks: their contract, and the values of records. */
import { didYouMean } from '../../hparams/index.js';
import { FileError, InputError } from '../inputErrors.js';
import { listed } from '../shown.js';
import type { DataRecord } from './recordTable.js';
import type { WatchedFile } from './watchedFile.js';

/** The kind of a column's values, for messages and for comparing files. */
export type ValueKind =
  | 'numbers'
  | 'booleans'
  | 'text'
  | 'bytes'
  | 'lists'
  | 'maps'
  | 'structs'
  | 'nulls'
  | 'JSON';

/** Records that are decoded together: a row group of Parquet, a record batch of Arrow. */
export interface Block {
  readonly numRecords: number;
  /** Bytes of its values, about. */
  readonly size: number;
  /** @throws InputError with file, block and column of damaged data */
  read(): DataRecord[];
}

/** An open file of columns. */
export interface ColumnFile {
  readonly file: WatchedFile;
  /** Its format, and the version of the code that makes its records. */
  readonly format: string;
  /** The columns to read. */
  readonly columns: ReadonlyMap<string, ValueKind>;
  readonly blocks: readonly Block[];
}

/** Reads the metadata of a file with columns. @param wanted the columns to read; null: all @throws InputError */
export type OpenColumnFile = (file: WatchedFile, wanted: readonly string[] | null) => ColumnFile;

/** The columns to read of those that a file has. @throws InputError for one that it has not */
export function columnsIn<T>(
  { path }: WatchedFile,
  has: ReadonlyMap<string, T>,
  wanted: readonly string[] | null,
): Map<string, T> {
  const names = [...has.keys()];
  return new Map(
    (wanted ?? names).map((name) => {
      const column = has.get(name);
      if (column !== undefined) return [name, column];
      throw new InputError(
        `${path} has no column '${name}'.${didYouMean(name, names)} It has: ${listed(names)}.`,
      );
    }),
  );
}

/** A name that occurs twice. */
export function repeated(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return names.find((name) => seen.size === seen.add(name).size);
}

/** A number or a name that a file states, for messages: damaged ones can be of any type. */
export const stated = (value: unknown): string =>
  ['number', 'bigint', 'string'].includes(typeof value) ? String(value) : 'none';

/** The result of `read`. @throws FileError that begins with the place, for any error of a library on damaged bytes */
export function decoded<T>(place: () => string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof InputError) throw error;
    // V8's own words would not help: a library has gone astray on bytes that it believed.
    const isForeign = error instanceof TypeError || error instanceof RangeError;
    const reason = isForeign ? 'its bytes are damaged.' : `${(error as Error).message}.`;
    throw new FileError(`${place()} cannot be decoded: ${reason.replace(/\.\.$/, '.')}`, { cause: error });
  }
}

/**
 * A value as records have it: exact integers are numbers, other integers bigints; missing values are null, lists
 * arrays, maps and structs objects, bytes Uint8Arrays.
 */
export function plainValue(value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (typeof value !== 'object') return value;
  // A copy, for it may be a part of all bytes of a block.
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(plainValue);
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<unknown>, plainValue);
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return Object.fromEntries(entries.map(([name, inner]) => [String(name), plainValue(inner)]));
}
