/** @file SHA-256 of shared memory on a thread of its own. */
import { Worker } from 'node:worker_threads';

const MODULE = new URL('./hashWorker.js', import.meta.url);

/** Hashes one stretch of bytes, piece by piece. */
export class HashThread {
  readonly #worker: Worker;
  /** Receivers of the answers, in the order of the questions. */
  readonly #waiting: { resolve: (answer: unknown) => void; reject: (cause: unknown) => void }[] = [];
  #failure: unknown;

  /** @param memory that the pieces are in */
  constructor(memory: SharedArrayBuffer) {
    this.#worker = new Worker(MODULE, { name: 'SHA-256', workerData: memory, execArgv: [] });
    const fail = (cause: unknown) => {
      this.#failure = cause;
      for (const { reject } of this.#waiting.splice(0)) reject(cause);
    };
    this.#worker.on('message', (answer: unknown) => this.#waiting.shift()!.resolve(answer));
    this.#worker.on('error', fail).on('exit', () => fail(new Error('the thread that hashes has ended')));
  }

  /** Settles once the bytes are hashed, which may be changed then. */
  async update(start: number, length: number): Promise<void> {
    await this.#ask({ start, length });
  }

  /** The digest of all pieces, in hexadecimal digits; the thread ends. */
  digest(): Promise<string> {
    return this.#ask(null);
  }

  /** Ends the thread. */
  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  #ask<Answer>(question: { readonly start: number; readonly length: number } | null): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      this.#waiting.push({ resolve: resolve as (answer: unknown) => void, reject });
      this.#worker.postMessage(question);
    });
  }
}
