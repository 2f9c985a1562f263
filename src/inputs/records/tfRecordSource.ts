/** @file TFRecord files: checked records of bytes, or of the features of tf.train.Example. */
import { crc32 } from 'node:zlib';
import { z } from 'zod';
import {
  TF_RECORD_HEAD_BYTES as HEAD_BYTES,
  maskedCrc32c,
  TF_RECORD_TAIL_BYTES as TAIL_BYTES,
} from '../../files/index.js';
import { InputError } from '../inputErrors.js';
import type { CorpusFile } from '../text/corpusFiles.js';
import { byteOf } from '../text/utf8.js';
import { joinTables } from './joinedTables.js';
import { LONGEST_RECORD, type OffsetWriter } from './offsetIndex.js';
import { recordIndex, type Scanned } from './recordIndex.js';
import { BaseFileSource } from './recordSources.js';
import type { DataRecord, RecordTable } from './recordTable.js';
import { exampleFeature, parseExample } from './tfExample.js';
import { openWatched, type WatchedFile } from './watchedFile.js';

const CHUNK_BYTES = 2 ** 20;

/** TFRecord files, read where they are. Checksums of lengths are compared in the scan, those of the data when it is read. */
export class TfRecordSource extends BaseFileSource.with({
  features: z
    .record(z.string(), exampleFeature)
    .nullable()
    .default(null)
    .describe('Features of tf.train.Example by name; null: a record is { data }, its bytes.'),
}) {
  protected override openFiles(files: readonly CorpusFile[]): RecordTable {
    const { features } = this.hp;
    const parse = (data: Buffer, place: () => string): DataRecord =>
      features === null ? { data: new Uint8Array(data) } : parseExample(data, features, place);
    return joinTables(files.map((file) => openWatched(file, (watched) => recordsOf(watched, parse))));
  }
}

function recordsOf(file: WatchedFile, parse: (data: Buffer, place: () => string) => DataRecord): RecordTable {
  const index = recordIndex(file, 'TFRecord 1', (starts) => scanRecords(file, starts));
  const placeOf = byteOf(file.name);
  const place = (i: number): string => placeOf(index.extent(i).start);
  return {
    numRecords: index.numRecords,
    digest: index.digest,
    files: [file.dataFile],
    place,
    read(i) {
      const { start, end } = index.extent(i);
      const bytes = file.read(start, end);
      const data = bytes.subarray(HEAD_BYTES, bytes.length - TAIL_BYTES);
      if (bytes.readUInt32LE(bytes.length - TAIL_BYTES) !== maskedCrc32c(data))
        throw new InputError(
          `${placeOf(start)}: record ${i} is damaged: the CRC-32C of its ${data.length} bytes differs from the file's.`,
        );
      return parse(data, () => place(i));
    },
    close() {
      index.close();
      file.close();
    },
  };
}

/** @throws InputError for a length whose CRC is wrong, and for a file that ends within a record */
function scanRecords(file: WatchedFile, starts: OffsetWriter): Scanned {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const placeOf = byteOf(file.name);
  let [position, checksum, next] = [0, 0, 0];
  for (;;) {
    const length = file.scan(chunk, position);
    // A head that the chunk cuts off begins the next one.
    let used = length;
    while (next < position + length) {
      const at = next - position;
      if (at + HEAD_BYTES > length) {
        used = at;
        break;
      }
      const size = chunk.readBigUInt64LE(at);
      if (chunk.readUInt32LE(at + 8) !== maskedCrc32c(chunk.subarray(at, at + 8)))
        throw new InputError(
          `${placeOf(next)}: the length of record ${starts.count} is damaged, or the file is not a TFRecord file.`,
        );
      if (size > LONGEST_RECORD)
        throw new InputError(
          `${placeOf(next)}: record ${starts.count} has ${size} bytes; expected at most ${LONGEST_RECORD}.`,
        );
      starts.add(next);
      next += HEAD_BYTES + Number(size) + TAIL_BYTES;
    }
    checksum = crc32(chunk.subarray(0, used), checksum);
    position += used;
    if (length < CHUNK_BYTES) {
      if (next === position && used === length) return { end: next, numSkipped: 0, checksum };
      const last = used < length ? next : starts.count - 1;
      throw new InputError(
        `${placeOf(position + length - used)}: the file ends within ${used < length ? 'the head of a record' : `record ${last}`}. Write it again, or truncate it there.`,
      );
    }
  }
}
