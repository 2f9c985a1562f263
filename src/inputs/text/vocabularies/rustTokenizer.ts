/** @file RustTokenizer: synchronous calls to the Rust library `tokenizers`. */
import { extname } from 'node:path';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import { startWorker } from '../../../workers/index.js';
import { InputError } from '../../inputErrors.js';
import type { RustAnswer, RustRequest, RustWorkerData } from './rustWorker.js';

/** Milliseconds without an answer after which the thread is given up. Its process is held to less: see rustWorker.ts. */
const LONGEST_MS = 3_600_000;

type Ask = (request: RustRequest) => Int32Array | string | null;

let askThread: Ask | undefined;
let handles = 0;

/** Starts the thread that all tokenizers of this one share; it does not keep the process. */
function startThread(): Ask {
  const { port1: port, port2: theirs } = new MessageChannel();
  const signal = new Int32Array(new SharedArrayBuffer(4));
  const workerData: RustWorkerData = { port: theirs, signal };
  const url = new URL(`./rustWorker${extname(import.meta.url)}`, import.meta.url);
  const worker = startWorker(url, { workerData, transferList: [theirs], name: 'tokenizers' });
  worker.unref();
  return (request) => {
    Atomics.store(signal, 0, 0);
    port.postMessage(request);
    if (request.type === 'forget') return null;
    // A wait may also end by the notice of the answer before, which is on its way when that is seen.
    while (Atomics.load(signal, 0) === 0)
      if (Atomics.wait(signal, 0, 0, LONGEST_MS) === 'timed-out')
        throw new InputError(
          `the thread of the library 'tokenizers' has not answered for ${LONGEST_MS / 1000} s`,
        );
    const reply = receiveMessageOnPort(port)!.message as RustAnswer;
    if ('error' in reply) throw new InputError(reply.error);
    return reply.value;
  };
}

const forgotten = new FinalizationRegistry<number>((handle) => askThread!({ type: 'forget', handle }));

/** Encodes and decodes by a tokenizer.json. */
export class RustTokenizer {
  readonly #handle = handles++;
  readonly #ask: Ask;

  /** @param contents the document @throws InputError with the library's message */
  constructor(contents: string) {
    askThread ??= startThread();
    this.#ask = askThread;
    this.#ask({ type: 'load', handle: this.#handle, contents });
    forgotten.register(this, this.#handle);
  }

  /** The ids of a text, which are not added to. @throws InputError for a text that the model has no ids for */
  encode(text: string): Int32Array {
    return this.#ask({ type: 'encode', handle: this.#handle, text }) as Int32Array;
  }

  /** The text of known ids, special tokens included. */
  decode(ids: ArrayLike<number>): string {
    return this.#ask({ type: 'decode', handle: this.#handle, ids: Array.from(ids) }) as string;
  }
}
