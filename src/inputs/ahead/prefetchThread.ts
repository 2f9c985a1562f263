/** @file A prefetch thread from the main thread's side: its start, its batches, its failure. */
import { extname } from 'node:path';
import { MessageChannel, type Worker } from 'node:worker_threads';
import { startWorker } from '../../workers/index.js';
import { SlotReader } from './batchSlots.js';
import {
  type Item,
  Mailbox,
  type PrefetchMessage,
  type PrefetchWorkerData,
  type StartCommand,
} from './prefetchProtocol.js';

/** A thread that builds an input from its config and reads ahead as commanded. */
export class PrefetchThread {
  readonly #worker: Worker;
  readonly #mailbox: Mailbox<PrefetchMessage>;
  /** Those of the last start. */
  #slots = new SlotReader();
  #isReady = false;
  #failure: Error | undefined;
  #isClosed = false;

  /** @param name the input's */
  constructor(name: string, data: Omit<PrefetchWorkerData, 'port'>) {
    const { port1, port2 } = new MessageChannel();
    const url = new URL(`./prefetchWorker${extname(import.meta.url)}`, import.meta.url);
    const workerData: PrefetchWorkerData = { ...data, port: port2 };
    this.#worker = startWorker(url, { workerData, transferList: [port2], name: `prefetch ${name}` });
    this.#mailbox = new Mailbox(port1);
    this.#worker.on('error', (error) => this.#end(error));
    this.#worker.on('exit', (code) => this.#end(new Error(`the thread ended with exit code ${code}`)));
    this.#worker.unref();
  }

  /** Whether the input is built and has read its files. @throws the thread's error. */
  get isReady(): boolean {
    while (!this.#isReady && this.#next() !== undefined);
    return this.#isReady;
  }

  /** Waits until it has loaded all classes of the config. @throws the thread's error. */
  async load(): Promise<void> {
    for (;;) {
      const message = this.#next();
      if (message?.kind === 'loaded') return;
      if (message === undefined) await this.#mailbox.wait();
    }
  }

  /** Discards the batches read ahead, and continues as commanded. */
  start(command: Omit<StartCommand, 'kind'>): void {
    this.#slots = new SlotReader();
    this.#mailbox.port.postMessage({ kind: 'start', ...command });
  }

  /** The next batch of a generation; undefined once the thread is closed. @throws the thread's error. */
  async take(generation: number): Promise<Item | undefined> {
    while (!this.#isClosed) {
      const message = this.#next();
      if (message === undefined) await this.#mailbox.wait();
      else if (message.kind === 'item' && message.generation === generation) {
        const { batch, ...item } = message.item;
        const copy = batch && this.#slots.read(batch);
        this.#mailbox.port.postMessage({ kind: 'taken', slot: batch?.slot });
        return { ...item, batch: copy };
      }
    }
    return undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#mailbox.wake();
    await this.#worker.terminate();
  }

  /** The next message. Those that the thread sent before it failed come first. */
  #next(): PrefetchMessage | undefined {
    const message = this.#mailbox.take();
    if (message?.kind === 'error') this.#failure = message.error;
    if (message?.kind === 'ready') this.#isReady = true;
    if (this.#failure !== undefined && (message === undefined || message.kind === 'error'))
      throw this.#failure;
    return message;
  }

  #end(error: Error): void {
    this.#failure ??= error;
    this.#mailbox.wake();
  }
}
