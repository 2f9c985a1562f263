/** @file Watched files: read in place, with changes since they were opened detected. */
import { type BigIntStats, closeSync, fstatSync, statSync } from 'node:fs';
import { openRegularFile, readFully } from '../../files/index.js';
import { versionOf } from '../../system/index.js';
import type { DataFile } from '../dataIdentity.js';
import { FileError, InputError } from '../inputErrors.js';
import type { CorpusFile } from '../text/corpusFiles.js';
import { decompressed } from './decompressed.js';
import { hasBytesOf } from './fileDigests.js';

/** An open file, which may neither change nor vanish until it is closed. Of a compressed file these are the bytes inside. */
export class WatchedFile {
  /** The path in messages. */
  readonly name: string;
  readonly path: string;
  /** Number of bytes. */
  readonly size: number;
  /** Identity of the file. */
  readonly dataFile: DataFile;
  /** The file's own when it was opened. */
  readonly version: string;
  /** undefined for the cache's own bytes, which do not change. */
  #status: BigIntStats | undefined;
  readonly #descriptor: number;

  /** @throws FileError for a file that cannot be read; InputError for compressed data that is damaged. */
  constructor({ name, path, mostUnpackedBytes }: CorpusFile) {
    this.name = name;
    this.path = path;
    try {
      const unpacked = decompressed(path, mostUnpackedBytes);
      this.#descriptor = openRegularFile(unpacked.path);
      const own = fstatSync(this.#descriptor, { bigint: true });
      this.#status = unpacked.source === undefined ? own : undefined;
      this.size = Number(own.size);
      this.version = unpacked.source ?? versionOf(own);
      this.dataFile = { name, path, size: unpacked.source === undefined ? this.size : statSync(path).size };
    } catch (error) {
      if (error instanceof InputError) throw error;
      throw new FileError(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  }

  /** The bytes from `start` to `end`; fewer where the file ends before. @throws FileError where the file is another one by now */
  read(start: number, end: number): Buffer {
    this.#checkUnchanged(start);
    const bytes = Buffer.allocUnsafe(end - start);
    const length = readFully(this.#descriptor, bytes, start);
    if (length < bytes.length) this.#checkUnchanged(start);
    return bytes.subarray(0, length);
  }

  /** Fills `chunk` from a position, without a check for changes. @returns the number of bytes, fewer at the end */
  scan(chunk: Uint8Array, position: number): number {
    return readFully(this.#descriptor, chunk, position);
  }

  #checkUnchanged(position: number): void {
    if (this.#status === undefined) return;
    const now = statSync(this.path, { bigint: true, throwIfNoEntry: false });
    const what = changeOf(this.#status, now);
    if (what === undefined) return;
    // Permissions and links change this time, too.
    const isSameFile = now?.ino === this.#status.ino && now.mtimeNs === this.#status.mtimeNs;
    if (isSameFile && hasBytesOf(this, this.#descriptor)) {
      this.#status = now;
      return;
    }
    throw new FileError(
      `${this.path}, byte ${position}: ${what} while it was being read. Restore the file, or start again to read the changed one.`,
    );
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/**
 * The result of `make` for an open file, which is closed if `make` fails. @throws the error of `make`; FileError for
 * system errors
 */
export function openWatched<T>(file: CorpusFile, make: (watched: WatchedFile) => T): T {
  const watched = new WatchedFile(file);
  try {
    return make(watched);
  } catch (error) {
    watched.close();
    if (error instanceof InputError) throw error;
    throw new FileError(`${file.path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

function changeOf(before: BigIntStats, now: BigIntStats | undefined): string | undefined {
  if (now === undefined) return 'the file vanished';
  if (now.size < before.size) return `the file shrank from ${before.size} to ${now.size} bytes`;
  if (now.size > before.size) return `the file grew from ${before.size} to ${now.size} bytes`;
  return versionOf(now) === versionOf(before) ? undefined : 'the file changed';
}
