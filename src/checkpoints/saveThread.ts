/** @file The main thread's end of the save worker: at most one save is in progress. */

import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { startWorker } from '../workers/index.js';
import { checkpointName } from './directory.js';
import { ioError } from './errors.js';
import type { WriteReply } from './saveWorker.js';
import type { WriteRequest } from './writeCheckpoint.js';

const MODULE = new URL(
  import.meta.url.endsWith('.ts') ? './saveWorker.ts' : './saveWorker.js',
  import.meta.url,
);

/** Starts with the first save, so that runs that save nothing have no thread. */
export class SaveThread {
  #worker: Worker | undefined;
  #writing: Promise<void> = Promise.resolve();

  /** Begins to write; `finished()` must have been awaited. `done` is told whether it succeeded. */
  write(request: WriteRequest, done: (written: boolean) => void): void {
    this.#writing = this.#exchange(request).then(
      () => done(true),
      (cause) => {
        done(false);
        const path = join(request.directory, checkpointName(request.description.step));
        throw ioError(path, 'cannot be written', cause);
      },
    );
    // Whoever waits next gets the error; until then it is not unhandled.
    this.#writing.catch(() => {});
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

  #exchange(request: WriteRequest): Promise<void> {
    const worker = (this.#worker ??= startWorker(MODULE, { name: 'checkpoints' }));
    return new Promise<void>((resolve, reject) => {
      const settle = () => {
        worker.off('message', answered).off('error', failed).off('exit', ended);
        // An idle worker must not keep the program alive.
        worker.unref();
      };
      const answered = (reply: WriteReply) => {
        settle();
        if (reply === null) resolve();
        else reject(new Error(reply.message));
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
