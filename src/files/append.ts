/** @file Files that a long run appends to, whatever happens to the disk, or to the file, meanwhile. */
import { closeSync, constants, fstatSync, ftruncateSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { explain } from './errors.js';
import { openRegularFile } from './read.js';
import { makeDirectory } from './write.js';

export interface AppendOptions {
  /** Told, in whole sentences, of what goes wrong, once each time. Default: a warning of the process. */
  readonly notify?: ((message: string) => void) | undefined;
  /** What a file that is made begins with. */
  readonly header?: () => Uint8Array;
  /** The file must not be there yet. */
  readonly isNew?: boolean;
}

/** Records that wait for a disk that is full take no more than this. */
const MOST_WAITING_BYTES = 4 << 20;

/**
 * A file that is only appended to, in whole records. A record that can't be written waits in memory, and is written
 * before the next one: a run goes on while its disk is full. A file that is removed is made anew.
 */
export class AppendedFile {
  #file: number;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  /** Records that there was no room for, on the disk or here. */
  #lost = 0;
  /** Where the file must be cut, since part of a record stands behind. */
  #tornAt: number | undefined;
  #isFailing = false;

  /** Opens the file, and makes the directories above it. @throws the system's error, UnfitFileError. */
  constructor(
    readonly path: string,
    private readonly options: AppendOptions = {},
  ) {
    makeDirectory(dirname(path));
    this.#file = this.#open(options.isNew ? constants.O_EXCL : 0);
    try {
      this.#flush();
    } catch (error) {
      closeSync(this.#file);
      throw error;
    }
  }

  /** Appends a record, or keeps it until there is room for it; never throws. */
  append(record: Uint8Array): void {
    this.#wait(record);
    try {
      this.#reopenIfRemoved();
      this.#flush();
    } catch (error) {
      if (!this.#isFailing)
        this.#notify(
          `${this.path} cannot be written: ${explain(error)}. What belongs there waits in memory.`,
        );
      this.#isFailing = true;
      return;
    }
    if (this.#isFailing) this.#notify(`${this.path} is written again${this.#lossText()}.`);
    this.#isFailing = false;
    this.#lost = 0;
  }

  /** @throws Error where records could not be written, even now. */
  close(): void {
    try {
      if (this.#waiting.length === 0) return;
      this.#reopenIfRemoved();
      this.#flush();
      this.#notify(`${this.path} is written again${this.#lossText()}.`);
    } catch (error) {
      this.#lost += this.#waiting.length;
      throw new Error(`${this.path} ends early${this.#lossText()}: ${explain(error)}`, { cause: error });
    } finally {
      closeSync(this.#file);
    }
  }

  #notify(message: string): void {
    (this.options.notify ?? ((text) => process.emitWarning(text)))(message);
  }

  #lossText(): string {
    return this.#lost === 0 ? '' : `, without ${this.#lost} ${this.#lost === 1 ? 'record' : 'records'}`;
  }

  #wait(record: Uint8Array): void {
    this.#waiting.push(record);
    this.#waitingBytes += record.length;
    while (this.#waitingBytes > MOST_WAITING_BYTES && this.#waiting.length > 1) {
      this.#waitingBytes -= this.#waiting.shift()!.length;
      this.#lost++;
    }
  }

  #open(flags: number): number {
    const file = openRegularFile(
      this.path,
      constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | flags,
    );
    const { header } = this.options;
    if (header !== undefined && fstatSync(file).size === 0) {
      const bytes = header();
      this.#waiting.unshift(bytes);
      this.#waitingBytes += bytes.length;
    }
    return file;
  }

  #reopenIfRemoved(): void {
    const there = statSync(this.path, { throwIfNoEntry: false });
    const own = fstatSync(this.#file);
    if (there?.ino === own.ino && there.dev === own.dev) return;
    makeDirectory(dirname(this.path));
    const file = this.#open(0);
    closeSync(this.#file);
    this.#file = file;
    this.#tornAt = undefined;
    this.#notify(`${this.path} was removed or replaced meanwhile; it goes on in a new file.`);
  }

  #flush(): void {
    if (this.#tornAt !== undefined) ftruncateSync(this.#file, this.#tornAt);
    this.#tornAt = undefined;
    for (let record = this.#waiting[0]; record !== undefined; record = this.#waiting[0]) {
      this.#writeRecord(record);
      this.#waiting.shift();
      this.#waitingBytes -= record.length;
    }
  }

  #writeRecord(record: Uint8Array): void {
    const start = fstatSync(this.#file).size;
    let done = 0;
    try {
      while (done < record.length) done += writeSync(this.#file, record, done);
    } catch (error) {
      if (done > 0) {
        this.#tornAt = start;
        ftruncateSync(this.#file, start);
        this.#tornAt = undefined;
      }
      throw error;
    }
  }
}
