/** @file EncoderThread: a tokenizer in a thread of its own, so that long texts keep no event loop waiting. */
import { extname } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { type Config, type JsonDocument, toJSON } from '../../hparams/index.js';
import { startWorker } from '../../workers/index.js';
import { InputError } from '../inputErrors.js';
import type { BaseTokenizer } from '../text/vocabularies/baseTokenizer.js';

/** Start data of the thread. */
export interface EncoderWorkerData {
  /** The tokenizer's config, with its learned state. */
  readonly document: JsonDocument;
  /** File URLs of modules with custom classes. */
  readonly modules: readonly string[];
}

/** To the thread. */
export interface EncoderRequest {
  readonly number: number;
  readonly text: string;
}

/** From the thread, in the order of the requests. */
export type EncoderAnswer = { readonly number: number } & (
  | { readonly ids: Int32Array }
  | { readonly name: string; readonly message: string }
);

interface Waiting {
  resolve(ids: Int32Array): void;
  reject(error: Error): void;
}

/** Encodes in a thread, which starts with the first text, and again where it has failed. */
export class EncoderThread {
  #worker: Worker | undefined;
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;

  /** @param config the tokenizer's, with its learned state. @param modules as those of `openInput` */
  constructor(
    private readonly config: Config<BaseTokenizer>,
    private readonly modules: readonly string[],
  ) {}

  /** The ids of a text. @throws InputError for one that cannot be encoded; Error where the thread lacks classes, or ends */
  encode(text: string): Promise<Int32Array> {
    return new Promise((resolve, reject) => {
      const number = this.#next++;
      this.#worker ??= this.#start();
      this.#waiting.set(number, { resolve, reject });
      this.#worker.ref();
      const request: EncoderRequest = { number, text };
      this.#worker.postMessage(request);
    });
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#end(worker, 'it was closed');
    await worker.terminate();
  }

  #start(): Worker {
    const url = new URL(`./encoderWorker${extname(import.meta.url)}`, import.meta.url);
    const workerData: EncoderWorkerData = { document: toJSON(this.config), modules: this.modules };
    const worker = startWorker(url, { workerData, name: 'encoder' });
    worker.on('message', (answer: EncoderAnswer) => this.#take(answer));
    worker.on('error', (error) => this.#end(worker, error.message));
    worker.on('exit', (code) => this.#end(worker, `exit code ${code}`));
    worker.unref();
    return worker;
  }

  #take(answer: EncoderAnswer): void {
    const waiting = this.#waiting.get(answer.number);
    this.#waiting.delete(answer.number);
    if (this.#waiting.size === 0) this.#worker?.unref();
    if ('ids' in answer) waiting?.resolve(answer.ids);
    else waiting?.reject(new (answer.name === 'InputError' ? InputError : Error)(answer.message));
  }

  #end(worker: Worker, reason: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const error = new Error(`The thread that encodes texts has ended: ${reason}.`);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
