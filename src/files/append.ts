/** @file Append-only files of long runs, which survive full disks and removal of the file. */
import { closeSync, constants, fstatSync, ftruncateSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { explain } from './fileErrors.js';
import { openRegularFile } from './read.js';
import { makeDirectory } from './write.js';

export interface AppendOptions {
  /** Receives each problem once, in whole sentences. Default: a warning of the process. */
  readonly notify?: ((message: string) => void) | undefined;
  /** First bytes of a new file. */
  readonly header?: () => Uint8Array;
  /** The file must not be there yet. */
  readonly isNew?: boolean;
}

/** Most memory for records that wait for a full disk. */
const MOST_WAITING_BYTES = 4 << 20;

/**
 * An append-only file of whole records. A record that can't be written waits in memory, and is written before the next
 * one: a run continues while its disk is full. A file that is removed is created again.
 */
export class AppendedFile {
  #file: number;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  /** Records dropped, since neither disk nor memory had room. */
  #lost = 0;
  /** Length to cut the file to, where part of a record follows. */
  #tornAt: number | undefined;
  #isFailing = false;

  /** Opens the file, and makes the directories above it. @throws UnfitFileError or the system's error. */
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
        this.#notify(`${this.path} cannot be written: ${explain(error)}. Its data is kept in memory.`);
      this.#isFailing = true;
      return;
    }
    if (this.#isFailing) this.#notify(`${this.path} is writable again${this.#lossText()}.`);
    this.#isFailing = false;
    this.#lost = 0;
  }

  /** Writes waiting records and closes the file. @throws Error where records still can't be written. */
  close(): void {
    try {
      if (this.#waiting.length === 0) return;
      this.#reopenIfRemoved();
      this.#flush();
      this.#notify(`${this.path} is writable again${this.#lossText()}.`);
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
    this.#notify(`${this.path} was removed or replaced meanwhile; writing continues in a new file.`);
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
