/** @file Files that can only be read from the front, unpacked once into a record file of the cache. */
import { crc32 } from 'node:zlib';
import { InputError } from '../inputErrors.js';
import { cachedFile, type DataCache } from './dataCache.js';
import { openRecordFile, RecordFileWriter } from './recordFile.js';
import { type DataRecord, fileDigest, type RecordTable } from './recordTable.js';
import type { WatchedFile } from './watchedFile.js';

const CACHE: DataCache = { name: 'records', mostBytes: 32 * 2 ** 30 };

/**
 * The records of a file, which is closed: only the first time that it is opened, `records` reads it.
 *
 * @param format all that its records depend on beside the file.
 * @param records each with its position in the file. @param place of a position, for messages.
 * @returns undefined where the cache can't be written. @throws InputError for a file that is damaged
 */
export function unpackedTable(
  file: WatchedFile,
  format: readonly unknown[],
  records: () => Iterable<readonly [DataRecord, position: number]>,
  place: (position: number) => string,
): RecordTable | undefined {
  const { dataFile } = file;
  try {
    const path = cachedFile(CACHE, file, ['records 1', ...format], (to) => write(to, records(), file));
    const unpacked = openRecordFile(path, `${path}, unpacked from ${dataFile.path}`);
    file.close();
    return { ...unpacked, place: (i) => place(unpacked.position(i)), files: [dataFile] };
  } catch (error) {
    if (error instanceof InputError) throw error;
    return undefined;
  }
}

function write(path: string, records: Iterable<readonly [DataRecord, number]>, file: WatchedFile): void {
  const writer = new RecordFileWriter(path);
  try {
    let count = 0;
    for (const [record, position] of records) {
      writer.add(record, position);
      count++;
    }
    writer.finish(contentsDigest(count, file));
  } finally {
    writer.discard();
  }
}

/** The digest of a table of a file's records: equal for equal files. */
export function contentsDigest(numRecords: number, file: WatchedFile): string {
  const chunk = Buffer.allocUnsafe(2 ** 20);
  let [checksum, at] = [0, 0];
  for (let length = -1; length !== 0; at += length) {
    length = file.scan(chunk, at);
    checksum = crc32(chunk.subarray(0, length), checksum);
  }
  return fileDigest(numRecords, checksum);
}
