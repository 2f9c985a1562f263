/** @file Messages between the main thread and a prefetch thread. */

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { JsonDocument } from '../../hparams/index.js';
import type { Batch } from '../batch.js';
import type { InputState } from '../inputSource.js';
import type { Skipped } from '../skippedExamples.js';
import type { SlottedBatch } from './batchSlots.js';

/** Start data of a prefetch thread. */
export interface PrefetchWorkerData {
  /** The input's config. */
  readonly document: JsonDocument;
  /** File URLs of modules with custom classes, loaded if the config uses any. */
  readonly modules: readonly string[];
  readonly port: MessagePort;
}

/** To the thread: discard batches read ahead; of those that follow `state`, make every `stride`-th from number `first` on. */
export interface StartCommand {
  readonly kind: 'start';
  readonly generation: number;
  readonly state: InputState;
  readonly first: number;
  readonly stride: number;
}

/** To the thread; `taken`: an item of the last start has been consumed, and its batch copied out of its slot. */
export type PrefetchCommand = StartCommand | { readonly kind: 'taken'; readonly slot: number | undefined };

/** A batch, null at the end of the data, and the input's state after it. */
export interface Item {
  readonly batch: Batch | null;
  readonly state: InputState;
  /** Examples left out on the way to it. */
  readonly skipped: Skipped;
}

/** An item with its batch in a slot of the thread's. */
interface SlottedItem extends Omit<Item, 'batch'> {
  readonly batch: SlottedBatch | null;
}

/** From the thread. Items carry the generation of their start command. */
export type PrefetchMessage =
  /** It has all classes of the config. */
  | { readonly kind: 'loaded' }
  /** The input is built and has read its files. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'item'; readonly generation: number; readonly item: SlottedItem }
  | { readonly kind: 'error'; readonly error: Error };

/** Messages of a port in order, taken at once if available, else awaited. */
export class Mailbox<T> {
  readonly #messages: T[] = [];
  #wake: (() => void) | null = null;

  constructor(readonly port: MessagePort) {
    port.on('message', (message: T) => {
      this.#messages.push(message);
      this.wake();
    });
    port.unref();
  }

  /** The oldest message, if any; does not yield to the event loop. */
  take(): T | undefined {
    for (let next = receiveMessageOnPort(this.port); next; next = receiveMessageOnPort(this.port)) {
      this.#messages.push(next.message as T);
    }
    return this.#messages.shift();
  }

  /** Keeps the process alive until a message arrives or `wake` is called. */
  async wait(): Promise<void> {
    if (this.#messages.length > 0) return;
    this.port.ref();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.port.unref();
  }

  /** Ends a `wait` for another reason than a message. */
  wake(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
