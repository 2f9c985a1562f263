/** @file Prefetching: an input read ahead in a worker thread. */

import { existsSync } from 'node:fs';
import { extname } from 'node:path';
import { MessageChannel, type Worker } from 'node:worker_threads';
import { build, type Config, type JsonDocument, toJSON } from '../hparams/index.js';
import { startWorker } from '../workers/index.js';
import type { BaseInput } from './baseInput.js';
import type { Batch, BatchUnit } from './batch.js';
import { type DataIdentity, withTokenizerOf } from './dataIdentity.js';
import { EndOfData, InputError } from './inputErrors.js';
import { type IdRows, type InputSource, type InputState, untilEnd } from './inputSource.js';
import { Pace } from './pace.js';
import {
  type Item,
  Mailbox,
  type PrefetchCommand,
  type PrefetchMessage,
  type PrefetchWorkerData,
} from './prefetchProtocol.js';

/** Options of `openInput`. */
export interface OpenInputOptions {
  /** File URLs of modules with custom input or tokenizer classes, for the worker to load. */
  readonly modules?: readonly string[];
}

/**
 * Builds an input, read ahead in a worker thread where `prefetchBatches` asks for it.
 *
 * Batches, states and errors are those of the input itself; missing files are detected here, before anything is read.
 * The main thread makes the first batches while the worker starts, so that programs need not wait.
 *
 * @throws InputError for invalid data
 */
export function openInput(config: Config<BaseInput>, options: OpenInputOptions = {}): InputSource {
  const input = build(config);
  input.getState();
  if (input.prefetch === 'never') return input;
  // The thread reads the files again; its tokenizer must not learn another vocabulary from changed ones.
  const document = toJSON(withTokenizerOf(config, input.dataIdentity()));
  return new PrefetchedInput(input, document, options.modules ?? []);
}

/** The thread and its messages. */
interface Thread {
  readonly worker: Worker;
  readonly mailbox: Mailbox<PrefetchMessage>;
}

class PrefetchedInput implements InputSource {
  readonly #input: BaseInput;
  readonly #document: JsonDocument;
  readonly #modules: readonly string[];
  #thread: Thread | null = null;
  /** Number of times that the thread has started reading; 0 while the main thread makes the batches. */
  #generation = 0;
  #state: InputState;
  #peeked: Item | null = null;
  #ended = false;
  readonly #pace = new Pace();
  #failure: InputError | null = null;
  #exitCode: number | null = null;
  #closed = false;

  constructor(input: BaseInput, document: JsonDocument, modules: readonly string[]) {
    this.#input = input;
    this.#document = document;
    this.#modules = modules;
    this.#state = input.getState();
  }

  get name(): string {
    return this.#input.name;
  }

  get batchSize(): number {
    return this.#input.batchSize;
  }

  get batchUnit(): BatchUnit {
    return this.#input.batchUnit;
  }

  get isEndless(): boolean {
    return this.#input.isEndless;
  }

  dataIdentity(): DataIdentity {
    return this.#input.dataIdentity();
  }

  /** Whether the worker makes the batches; at first, the main thread does. */
  get readsAhead(): boolean {
    return this.#generation > 0;
  }

  getGlobalBatchSize(): number {
    return this.#input.getGlobalBatchSize();
  }

  idsToStrings(ids: IdRows, lengths?: ArrayLike<number>): string[] {
    return this.#input.idsToStrings(ids, lengths);
  }

  async getNext(): Promise<Batch> {
    const item = this.#peeked ?? (await this.#read());
    this.#peeked = null;
    this.#state = item.state;
    if (item.batch) return item.batch;
    this.#ended = true;
    throw new EndOfData(this.name);
  }

  async peek(): Promise<Batch> {
    this.#peeked ??= await this.#read();
    if (this.#peeked.batch) return this.#peeked.batch;
    throw new EndOfData(this.name);
  }

  async getNextPadded(): Promise<Batch> {
    return this.#input.padded(await this.getNext());
  }

  async peekPadded(): Promise<Batch> {
    return this.#input.padded(await this.peek());
  }

  getState(): InputState {
    return this.#state;
  }

  reset(): void {
    this.#input.reset();
    this.#restart(this.#input.getState());
  }

  setState(state: InputState): void {
    this.#input.setState(state);
    this.#restart(state);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#thread?.mailbox.wake();
    await this.#thread?.worker.terminate();
    await this.#input.close();
  }

  #restart(state: InputState): void {
    this.#state = state;
    this.#peeked = null;
    this.#ended = false;
    if (this.readsAhead) this.#startFrom(state);
  }

  async #read(): Promise<Item> {
    if (this.#closed || this.#failure) this.#checkAlive();
    if (this.#ended) return { batch: null, state: this.#state };
    return this.readsAhead ? await this.#receive() : await this.#make();
  }

  /** Makes a batch in this thread until the worker is ready. */
  async #make(): Promise<Item> {
    this.#pace.begin();
    const batch = await untilEnd(() => this.#input.getNext());
    this.#pace.end();
    const state = this.#input.getState();
    if (batch === undefined) return { batch: null, state };
    if (this.#thread === null && this.#isWorthThread) this.#thread = this.#start();
    const message = this.#thread?.mailbox.take();
    if (message?.kind === 'error') this.#fail(message.error);
    if (message?.kind === 'ready') this.#startFrom(state);
    else this.#checkAlive();
    return { batch, state };
  }

  /**
   * Whether a thread pays: never before the second batch, so that the program's first step has the machine to itself.
   */
  get #isWorthThread(): boolean {
    return this.#input.prefetch === 'where it is slow' ? this.#pace.isSlow : this.#pace.made >= 2;
  }

  async #receive(): Promise<Item> {
    const { mailbox } = this.#thread!;
    for (;;) {
      const message = mailbox.take();
      if (message?.kind === 'error') this.#fail(message.error);
      if (message === undefined) {
        this.#checkAlive();
        await mailbox.wait();
      } else if (message.kind === 'item' && message.generation === this.#generation) {
        this.#post({ kind: 'taken' });
        return message.item;
      }
    }
  }

  /** Called when there is no message, since messages sent before the thread ended come first. */
  #checkAlive(): void {
    if (this.#closed) throw new InputError(`Input '${this.name}' is closed.`);
    if (this.#failure) throw this.#failure;
    if (this.#exitCode !== null) this.#fail(new Error(`the thread ended with exit code ${this.#exitCode}`));
  }

  #start(): Thread {
    const { port1, port2 } = new MessageChannel();
    const workerData: PrefetchWorkerData = { document: this.#document, modules: this.#modules, port: port2 };
    const url = new URL(`./prefetchWorker${extname(import.meta.url)}`, import.meta.url);
    const worker = startWorker(url, { workerData, transferList: [port2], name: `prefetch ${this.name}` });
    const mailbox = new Mailbox<PrefetchMessage>(port1);
    worker.on('error', (error) => {
      this.#failure ??= this.#failed(error);
      mailbox.wake();
    });
    worker.on('exit', (code) => {
      this.#exitCode = code;
      mailbox.wake();
    });
    worker.unref();
    return { worker, mailbox };
  }

  #startFrom(state: InputState): void {
    this.#post({ kind: 'start', generation: ++this.#generation, state });
  }

  #post(command: PrefetchCommand): void {
    this.#thread!.mailbox.port.postMessage(command);
  }

  #fail(error: Error): never {
    this.#failure = this.#failed(error);
    throw this.#failure;
  }

  #failed(error: Error): InputError {
    // The thread rereads the files, which may have been deleted.
    const gone = (this.dataIdentity().files ?? []).filter(({ path }) => !existsSync(path));
    const reason =
      gone.length === 0
        ? error.message
        : `${gone.map(({ path }) => path).join(', ')} was deleted after the start. Restore it.`;
    return new InputError(`Input '${this.name}' failed in its prefetch thread: ${reason}`, { cause: error });
  }
}
