/** @file Reads an input ahead in a worker thread, so that the main thread finds each batch ready. */

import { existsSync } from 'node:fs';
import { extname } from 'node:path';
import { MessageChannel, type Worker } from 'node:worker_threads';
import { build, type Config, type JsonDocument, toJSON } from '../hparams/index.js';
import { startWorker } from '../workers/index.js';
import type { BaseInput } from './baseInput.js';
import type { Batch } from './batch.js';
import { type BatchLayout, layoutOf, readBatch } from './batchLayout.js';
import { type DataIdentity, withTokenizerOf } from './dataIdentity.js';
import { EndOfData, InputError } from './errors.js';
import type { IdRows, InputSource, InputState } from './inputSource.js';
import { Pace } from './pace.js';
import {
  Mailbox,
  type PrefetchMessage,
  type PrefetchWorkerData,
  type StartCommand,
  Word,
} from './prefetchProtocol.js';

/** How `openInput` reads. */
export interface OpenInputOptions {
  /** File URLs of modules that export input or tokenizer classes of one's own: the worker loads them for those. */
  readonly modules?: readonly string[];
}

/**
 * Builds an input, and reads it ahead in a worker thread where its `prefetchBatches` says so.
 *
 * Batches, states and errors are those of the input itself; files that are missing are found here, before anything
 * is read. The main thread makes the first batches, while the worker starts, so a program need not wait for it.
 * @throws InputError for what is wrong with the data
 */
export function openInput(config: Config<BaseInput>, options: OpenInputOptions = {}): InputSource {
  const input = build(config);
  input.getState();
  if (input.prefetch === 'never') return input;
  // The thread reads the files again: a tokenizer must not learn another vocabulary from what they are by then.
  const document = toJSON(withTokenizerOf(config, input.dataIdentity()));
  return new PrefetchedInput(input, document, options.modules ?? []);
}

/** What the input gave: a batch and the state after it, or its end. */
interface Item {
  readonly batch: Batch | null;
  readonly state: InputState;
}

/** The thread with all that is shared with it. */
interface Thread {
  readonly worker: Worker;
  readonly mailbox: Mailbox<PrefetchMessage>;
  readonly control: Int32Array;
}

/** Small batches wait in greater number, up to so much memory: programs may take several at once. */
const AHEAD_BYTES = 4 << 20;

class PrefetchedInput implements InputSource {
  readonly #input: BaseInput;
  readonly #document: JsonDocument;
  readonly #modules: readonly string[];
  #thread: Thread | null = null;
  /** The slots, once the thread reads; until then the main thread makes the batches. */
  #slots: { memory: SharedArrayBuffer; layout: BatchLayout } | null = null;
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

  get isEndless(): boolean {
    return this.#input.isEndless;
  }

  dataIdentity(): DataIdentity {
    return this.#input.dataIdentity();
  }

  /** Whether the worker makes the batches now; at first the main thread does. */
  get readsAhead(): boolean {
    return this.#slots !== null;
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
    if (this.#slots) this.#command(state);
  }

  async #read(): Promise<Item> {
    if (this.#closed || this.#failure) this.#checkAlive();
    if (this.#ended) return { batch: null, state: this.#state };
    return this.#slots ? await this.#receive() : await this.#make();
  }

  /** Makes a batch in this thread, and hands over to the worker once that is ready. */
  async #make(): Promise<Item> {
    let batch: Batch | null = null;
    this.#pace.begin();
    try {
      batch = await this.#input.getNext();
    } catch (error) {
      if (!(error instanceof EndOfData)) throw error;
    }
    this.#pace.end();
    const item = { batch, state: this.#input.getState() };
    if (batch === null) return item;
    if (this.#thread === null && this.#isWorthThread) this.#thread = this.#start();
    const ready = this.#thread?.mailbox.take();
    if (ready?.kind === 'error') this.#fail(ready.error);
    if (!ready) this.#checkAlive();
    if (ready?.kind === 'ready') {
      const layout = layoutOf(batch);
      const memory = new SharedArrayBuffer(layout.size * this.#depth(layout.size));
      this.#slots = { memory, layout };
      this.#command(item.state);
    }
    return item;
  }

  /** The first batch waits for nothing, and the program's first step has the machine for itself. */
  get #isWorthThread(): boolean {
    return this.#input.prefetch === 'where it is slow' ? this.#pace.isSlow : this.#pace.made >= 2;
  }

  /** How many batches of so many bytes may wait. */
  #depth(bytes: number): number {
    const { prefetch } = this.#input;
    if (typeof prefetch === 'object') return prefetch.batches;
    return Math.max(2, Math.min(16, Math.floor(AHEAD_BYTES / bytes)));
  }

  async #receive(): Promise<Item> {
    const { mailbox } = this.#thread!;
    const { memory, layout } = this.#slots!;
    for (;;) {
      const message = mailbox.take();
      if (message?.kind === 'batch') {
        const { content } = message;
        const isCurrent = message.generation === this.#generation;
        const isSlot = typeof content === 'number';
        const batch = isCurrent && isSlot ? readBatch(layout, memory, content * layout.size) : content;
        this.#notify(Word.taken);
        if (isCurrent) return { batch: batch as Batch, state: message.state };
      } else if (message?.kind === 'end') {
        if (message.generation === this.#generation) return { batch: null, state: message.state };
      } else if (message?.kind === 'error') {
        this.#fail(message.error);
      } else {
        this.#checkAlive();
        await mailbox.wait();
      }
    }
  }

  /** To be asked where there is no message: what the thread said before it ended comes first. */
  #checkAlive(): void {
    if (this.#closed) throw new InputError(`Input '${this.name}' is closed.`);
    if (this.#failure) throw this.#failure;
    if (this.#exitCode !== null) this.#fail(new Error(`the thread ended with exit code ${this.#exitCode}`));
  }

  #start(): Thread {
    const { port1, port2 } = new MessageChannel();
    const control = new SharedArrayBuffer(4 * Object.keys(Word).length);
    const document = this.#document;
    const data: PrefetchWorkerData = { document, modules: this.#modules, port: port2, control };
    const url = new URL(`./prefetchWorker${extname(import.meta.url)}`, import.meta.url);
    const worker = startWorker(url, {
      workerData: data,
      transferList: [port2],
      name: `prefetch ${this.name}`,
    });
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
    return { worker, mailbox, control: new Int32Array(control) };
  }

  #command(state: InputState): void {
    const command: StartCommand = { generation: ++this.#generation, state, ...this.#slots! };
    this.#thread!.mailbox.port.postMessage(command);
    this.#notify();
  }

  /** Wakes the thread after a command, or after a batch was taken. */
  #notify(counter?: number): void {
    const { control } = this.#thread!;
    if (counter !== undefined) Atomics.add(control, counter, 1);
    Atomics.add(control, Word.wake, 1);
    Atomics.notify(control, Word.wake);
  }

  #fail(error: Error): never {
    this.#failure = this.#failed(error);
    throw this.#failure;
  }

  #failed(error: Error): InputError {
    // The thread reads the files once more, and they may be gone since the first time.
    const gone = (this.dataIdentity().files ?? []).filter(({ path }) => !existsSync(path));
    const reason =
      gone.length === 0
        ? error.message
        : `${gone.map(({ path }) => path).join(', ')} was deleted after the start. Bring it back.`;
    return new InputError(`Input '${this.name}' failed in its prefetch thread: ${reason}`, { cause: error });
  }
}
