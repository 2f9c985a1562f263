/** @file Files that grow over several processes, each of which goes on from a length that is known to be on the disk. */
import { closeSync, constants, fstatSync, fsyncSync, ftruncateSync } from 'node:fs';
import { openRegularFile } from './read.js';
import { writeFully } from './write.js';

/** A file that grows at its end. Its bytes are on the disk after `sync`. */
export class GrowingFile {
  readonly #file: number;
  #length: number;
  #isSynced = false;

  /**
   * Opens the file, and drops all behind `length`.
   *
   * @throws RangeError for a file that is shorter; UnfitFileError or the system's error.
   */
  constructor(
    readonly path: string,
    length = 0,
  ) {
    this.#file = openRegularFile(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT);
    this.#length = length;
    try {
      const { size } = fstatSync(this.#file);
      if (size < length) throw new RangeError(`${path} has ${size} bytes; expected ${length} or more`);
      ftruncateSync(this.#file, length);
    } catch (error) {
      closeSync(this.#file);
      throw error;
    }
  }

  get length(): number {
    return this.#length;
  }

  append(bytes: Uint8Array): void {
    this.#isSynced = false;
    writeFully(this.#file, bytes);
    this.#length += bytes.length;
  }

  /** Waits until all is on the disk. */
  sync(): void {
    if (!this.#isSynced) fsyncSync(this.#file);
    this.#isSynced = true;
  }

  close(): void {
    closeSync(this.#file);
  }
}
