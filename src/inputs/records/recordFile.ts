/** @file Record files: records of any columns in one file, read one at a time in any order. */
import { closeSync, fstatSync, fsyncSync, openSync, renameSync } from 'node:fs';
import { dirname } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import { crc32 } from 'node:zlib';
import {
  openRegularFile,
  readFully,
  removeQuietly,
  syncDirectory,
  temporaryName,
  writeFully,
} from '../../files/index.js';
import { InputError } from '../inputErrors.js';
import type { JsonValue } from '../jsonValue.js';
import { LONGEST_RECORD, OffsetIndex, OffsetWriter } from './offsetIndex.js';
import type { DataRecord } from './recordTable.js';

/**
 * A file is MAGIC, the records, the index of their offsets, a footer of JSON, the footer's length and CRC-32, and MAGIC. A record
 * is a head (the payload's length and checksum, uint32 each, and the position in its source, a float64) and its payload, by
 * `v8.serialize`, whose format each version of Node reads of earlier ones.
 */
const MAGIC = Buffer.from('LUTHREC1');
const HEAD_BYTES = 16;
const TAIL_BYTES = 8 + MAGIC.length;
const LONGEST_FOOTER = 64 * 2 ** 20;
const BUFFERED_BYTES = 2 ** 20;

interface Footer {
  readonly numRecords: number;
  /** Where the index begins. */
  readonly indexAt: number;
  readonly digest: string;
  readonly about: JsonValue;
}

/** Goes with the record's number, too: offsets that lead to another record are found out. */
const checksumOf = (head: Buffer, payload: Uint8Array, i: number): number =>
  crc32(payload, crc32(head.subarray(8, HEAD_BYTES), i % 2 ** 32));

/** A file that grows at its end, through a buffer. */
class Appended {
  length = 0;
  readonly descriptor: number;
  readonly #buffer = Buffer.allocUnsafe(BUFFERED_BYTES);
  #filled = 0;

  constructor(readonly path: string) {
    this.descriptor = openSync(path, 'w+');
  }

  append(bytes: Uint8Array): void {
    this.length += bytes.length;
    if (this.#filled + bytes.length > BUFFERED_BYTES) this.flush();
    if (bytes.length > BUFFERED_BYTES) writeFully(this.descriptor, bytes);
    else {
      this.#buffer.set(bytes, this.#filled);
      this.#filled += bytes.length;
    }
  }

  flush(): void {
    writeFully(this.descriptor, this.#buffer.subarray(0, this.#filled));
    this.#filled = 0;
  }

  /** Closes and removes it, unless it has another name by now. */
  remove(): void {
    closeSync(this.descriptor);
    removeQuietly(this.path);
  }
}

/** Writes a record file in constant memory. Its path does not exist before `finish`. */
export class RecordFileWriter {
  readonly #path: string;
  readonly #records: Appended;
  readonly #index: Appended;
  readonly #offsets: OffsetWriter;
  readonly #head = Buffer.alloc(HEAD_BYTES);
  #isOpen = true;

  /** @throws the system's error where the file can't be made. */
  constructor(path: string) {
    this.#path = path;
    this.#index = new Appended(temporaryName(`${path}.index`));
    try {
      this.#records = new Appended(temporaryName(path));
    } catch (error) {
      this.#index.remove();
      throw error;
    }
    this.#offsets = new OffsetWriter((bytes) => this.#index.append(bytes));
    this.#records.append(MAGIC);
  }

  /**
   * @param position of the record in its source, for messages: a line, a row, a byte.
   * @throws InputError for a record of more than 256 MiB, or with values that cannot be stored.
   */
  add(record: DataRecord, position: number): void {
    const payload = this.#payloadOf(record);
    this.#head.writeUInt32LE(payload.length, 0);
    this.#head.writeDoubleLE(position, 8);
    this.#head.writeUInt32LE(checksumOf(this.#head, payload, this.#offsets.count), 4);
    this.#offsets.add(this.#records.length);
    this.#records.append(this.#head);
    this.#records.append(payload);
  }

  #payloadOf(record: DataRecord): Buffer {
    let payload: Buffer;
    try {
      payload = serialize(record);
    } catch (error) {
      throw new InputError(`record ${this.#offsets.count} cannot be stored: ${(error as Error).message}`, {
        cause: error,
      });
    }
    if (payload.length + HEAD_BYTES <= LONGEST_RECORD) return payload;
    throw new InputError(
      `record ${this.#offsets.count} has ${payload.length} bytes; expected at most ${LONGEST_RECORD - HEAD_BYTES}`,
    );
  }

  /**
   * Ends the file and puts it in its place.
   *
   * @param digest equal for equal records, as `RecordTable.digest`.
   * @param about whatever else the file is to say.
   * @throws the system's error where it can't be written; then nothing is left.
   */
  finish(digest: string, about: JsonValue = null): void {
    try {
      const indexAt = this.#records.length;
      const numRecords = this.#offsets.finish(indexAt);
      this.#index.flush();
      const chunk = Buffer.allocUnsafe(BUFFERED_BYTES);
      for (let at = 0; at < this.#index.length; at += chunk.length)
        this.#records.append(chunk.subarray(0, readFully(this.#index.descriptor, chunk, at)));
      const footer: Footer = { numRecords, indexAt, digest, about };
      const json = Buffer.from(JSON.stringify(footer));
      const tail = Buffer.alloc(TAIL_BYTES);
      tail.writeUInt32LE(json.length, 0);
      tail.writeUInt32LE(crc32(json), 4);
      tail.set(MAGIC, 8);
      this.#records.append(json);
      this.#records.append(tail);
      this.#records.flush();
      fsyncSync(this.#records.descriptor);
      renameSync(this.#records.path, this.#path);
      syncDirectory(dirname(this.#path));
    } finally {
      this.discard();
    }
  }

  /** Leaves nothing of a file that is not finished. */
  discard(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#records.remove();
    this.#index.remove();
  }
}

/** An open record file. */
export interface RecordFile {
  readonly numRecords: number;
  readonly digest: string;
  /** The writer's metadata. */
  readonly about: JsonValue;
  /** Bytes of the file. */
  readonly size: number;
  /** @throws InputError for a record that is damaged. */
  read(i: number): DataRecord;
  /** The position of record `i` in its source. @throws InputError as `read`. */
  position(i: number): number;
  close(): void;
}

/**
 * Opens a record file.
 *
 * @param name in messages.
 * @throws InputError for other files, damaged ones and incomplete ones; and the system's errors.
 */
export function openRecordFile(path: string, name = path): RecordFile {
  const file = openRegularFile(path);
  try {
    return recordsOf(file, name);
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

function recordsOf(file: number, name: string): RecordFile {
  const { size } = fstatSync(file);
  const { numRecords, indexAt, digest, about } = readFooter(file, size, name);
  const index = new OffsetIndex((position, target) => void readFully(file, target, position), indexAt);
  const frameAt = (i: number): Buffer => {
    const { start, end } = index.extent(i);
    const damaged = (at: number, what: string) =>
      new InputError(`${name}, byte ${at}: ${what} ${i} is damaged. Write the file anew.`);
    const isExtent = Number.isInteger(start) && Number.isInteger(end) && start >= MAGIC.length;
    if (!isExtent || start + HEAD_BYTES > end || end > indexAt || end - start > LONGEST_RECORD)
      throw damaged(indexAt, 'the index of record');
    const frame = Buffer.allocUnsafeSlow(end - start);
    const length = readFully(file, frame, start);
    const payload = frame.subarray(HEAD_BYTES);
    if (
      length === frame.length &&
      frame.readUInt32LE(0) === payload.length &&
      frame.readUInt32LE(4) === checksumOf(frame, payload, i)
    )
      return frame;
    throw damaged(start, 'record');
  };
  return {
    numRecords,
    digest,
    about,
    size,
    read(i) {
      const payload = frameAt(i).subarray(HEAD_BYTES);
      try {
        return deserialize(payload) as DataRecord;
      } catch (error) {
        throw new InputError(
          `${name}, byte ${index.extent(i).start}: this Node (${process.version}) cannot read record ${i}, which another version wrote: ${(error as Error).message} Write the file anew.`,
          { cause: error },
        );
      }
    },
    position: (i) => frameAt(i).readDoubleLE(8),
    close: () => closeSync(file),
  };
}

function readFooter(file: number, size: number, name: string): Footer {
  const [first, tail] = [Buffer.alloc(MAGIC.length), Buffer.alloc(TAIL_BYTES)];
  readFully(file, first, 0);
  if (!first.equals(MAGIC))
    throw new InputError(
      `${name} is not a record file of Luthier: it begins with ${JSON.stringify(first.toString('latin1'))}, not with '${MAGIC}'.`,
    );
  const truncated = new InputError(
    `${name}, byte ${size}: the record file ends before its index, or is damaged there. Write it anew.`,
  );
  if (size < MAGIC.length + TAIL_BYTES) throw truncated;
  readFully(file, tail, size - TAIL_BYTES);
  const length = tail.readUInt32LE(0);
  if (!tail.subarray(8).equals(MAGIC) || length > Math.min(LONGEST_FOOTER, size)) throw truncated;
  const json = Buffer.alloc(length);
  readFully(file, json, size - TAIL_BYTES - length);
  if (crc32(json) !== tail.readUInt32LE(4)) throw truncated;
  return JSON.parse(json.toString()) as Footer;
}
