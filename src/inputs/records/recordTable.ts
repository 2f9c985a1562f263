/** @file Record tables: numbered records with random access. */
import { createHash } from 'node:crypto';
import type { DataFile } from '../dataIdentity.js';
import { InputError } from '../inputErrors.js';
import { shown } from '../shown.js';

/** A record: values by the names of their columns. */
export type DataRecord = Readonly<Record<string, unknown>>;

/** The records of a source, or of a split of it, from 0 to `numRecords` − 1. */
export interface RecordTable {
  readonly numRecords: number;
  /** Record `i`; the caller may keep any part of it. @throws InputError with file and place of an unreadable record */
  read(i: number): DataRecord;
  /** Where record `i` is, for messages: `data/a.csv:12`, or `record 3`. */
  place(i: number): string;
  /** The files that hold the records, in order. */
  readonly files: readonly DataFile[];
  /** Equal for equal records in the same order, on every machine; hexadecimal. */
  readonly digest: string;
  /** Closes the files; reading is over. */
  close(): void;
}

/** Digest of a file's records, by the file's CRC-32. */
export const fileDigest = (numRecords: number, checksum: number): string =>
  `${numRecords}-${checksum.toString(16)}`;

/** Records in memory, with files and places of their own where they have any. */
export function memoryTable(
  records: readonly DataRecord[],
  place: (i: number) => string = (i) => `record ${i}`,
  files: readonly DataFile[] = [],
): RecordTable {
  let digest: string | undefined;
  return {
    numRecords: records.length,
    read: (i) => records[i]!,
    place,
    files,
    get digest() {
      digest ??= digestOfRecords(records);
      return digest;
    },
    close() {},
  };
}

/** A table of all records of an iterable. @throws InputError for values that are not records */
export function tableOf(records: Iterable<unknown>): RecordTable {
  return memoryTable(Array.from(records, (record, i) => recordOf(record, () => `record ${i}`)));
}

/** A value as a record. @throws InputError with the place of any other value */
export function recordOf(value: unknown, place: () => string): DataRecord {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as DataRecord;
  throw new InputError(`${place()}: expected an object, { column: value, … }; got ${shown(value)}`);
}

function digestOfRecords(records: readonly DataRecord[]): string {
  const hash = createHash('sha256');
  for (const record of records) hash.update(`${JSON.stringify(record, writable)}\n`);
  return hash.digest('hex').slice(0, 16);
}

/** JSON has no bytes and no large integers. */
function writable(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return { bigint: `${value}` };
  if (!ArrayBuffer.isView(value)) return value;
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return { [value.constructor.name]: bytes.toString('base64') };
}
