/** @file The main thread's side of the save worker, with at most one save in progress. */

import { extname, join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { explain } from '../files/index.js';
import { startWorker } from '../workers/index.js';
import { CheckpointError, ioError } from './checkpointErrors.js';
import type { FilePart } from './filePart.js';
import type { Failure, WriteReply } from './saveWorker.js';
import type { WriteRequest } from './writeCheckpoint.js';

const MODULE = new URL(`./saveWorker${extname(import.meta.url)}`, import.meta.url);

/** A save that is on the disk. */
interface Written {
  /** Seconds from its request to the answer. */
  readonly seconds: number;
  readonly bytes: number;
}

/** A checkpoint, or a part of one. */
type SaveRequest = WriteRequest | FilePart;

/** Receivers of a save's outcome. */
export interface SaveListener {
  readonly written: (written: Written) => void;
  readonly failed: (error: CheckpointError) => void;
  /** An old checkpoint could not be deleted. */
  readonly kept: (error: CheckpointError) => void;
}

/** Started by the first save: runs that save nothing have no thread. */
export class SaveThread {
  #worker: Worker | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isWriting = false;
  #hasFailed = false;

  /** Whether a save is in progress. */
  get isWriting(): boolean {
    return this.#isWriting;
  }

  /** Whether the last save that has ended could not be written. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /**
   * Starts a save, after `finished()`.
   *
   * @param prepare makes the request; it may fail already.
   * @returns once it has been made.
   */
  async write(
    path: string,
    prepare: () => SaveRequest | Promise<SaveRequest>,
    listener: SaveListener,
  ): Promise<void> {
    this.#isWriting = true;
    // Now, so that the state may change behind a request that is made at once.
    const prepared = (async () => prepare())();
    this.#writing = this.#write(prepared, listener)
      .catch((cause) => {
        const error = new CheckpointError('io', path, `cannot be written: ${explain(cause)}`, { cause });
        this.#hasFailed = true;
        listener.failed(error);
        throw error;
      })
      .finally(() => {
        this.#isWriting = false;
      });
    // The error goes to the next one who waits; until then it is not unhandled.
    this.#writing.catch(() => {});
    await prepared.catch(() => {});
  }

  /** Settles as the save in progress does. Each failure is reported once. */
  async finished(): Promise<void> {
    const writing = this.#writing;
    try {
      await writing;
    } finally {
      if (this.#writing === writing) this.#writing = Promise.resolve();
    }
  }

  async close(): Promise<void> {
    try {
      await this.finished();
    } finally {
      const worker = this.#worker;
      this.#worker = undefined;
      await worker?.terminate();
    }
  }

  async #write(prepared: Promise<SaveRequest>, { written, kept }: SaveListener): Promise<void> {
    const request = await prepared;
    const began = performance.now();
    const reply = await this.#exchange(request);
    if (reply.failure !== undefined) throw systemError(reply.failure);
    const bytes = bytesOf('description' in request ? request.state : request);
    this.#hasFailed = false;
    written({ seconds: (performance.now() - began) / 1000, bytes });
    for (const { name, ...failure } of reply.kept)
      kept(ioError(join(request.directory, name), 'cannot be removed', systemError(failure)));
  }

  #exchange(request: SaveRequest): Promise<WriteReply> {
    const worker = (this.#worker ??= startWorker(MODULE, { name: 'checkpoints' }));
    return new Promise((resolve, reject) => {
      const settle = () => {
        worker.off('message', answered).off('error', failed).off('exit', ended);
        // An idle worker must not keep the program alive.
        worker.unref();
      };
      const answered = (reply: WriteReply) => {
        settle();
        resolve(reply);
      };
      const failed = (cause: unknown) => {
        settle();
        this.#worker = undefined;
        reject(cause);
      };
      const ended = (code: number) => failed(new Error(`the worker ended with exit code ${code}`));
      worker.on('message', answered).on('error', failed).on('exit', ended);
      worker.ref();
      worker.postMessage(request);
    });
  }
}

/** Bytes of a state's file, or of all its parts. */
const bytesOf = (state: WriteRequest['state']): number =>
  'prefix' in state ? state.prefix.byteLength + state.data.byteLength : state.fileLength;

function systemError({ message, code, errno }: Failure): Error {
  return Object.assign(new Error(message), { code, errno });
}
