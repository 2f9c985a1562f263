/** @file Messages between the main thread and a prefetch thread. */

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { JsonDocument } from '../hparams/index.js';
import type { Batch } from './batch.js';
import type { InputState } from './inputSource.js';

/** Start data of a prefetch thread. */
export interface PrefetchWorkerData {
  /** The input's config. */
  readonly document: JsonDocument;
  /** File URLs of modules with classes of the config, loaded where it names others than those of this room. */
  readonly modules: readonly string[];
  readonly port: MessagePort;
}

/** To the thread: drop what was read ahead, and read on from `state`. */
export interface StartCommand {
  readonly kind: 'start';
  readonly generation: number;
  readonly state: InputState;
}

/** To the thread; `taken`: a batch of the last start is no longer waiting. */
export type PrefetchCommand = StartCommand | { readonly kind: 'taken' };

/** A batch, null at the end of the data, and the input's state after it. */
export interface Item {
  readonly batch: Batch | null;
  readonly state: InputState;
}

/** From the thread. Items carry the generation of the start that they belong to. */
export type PrefetchMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'item'; readonly generation: number; readonly item: Item }
  | { readonly kind: 'error'; readonly error: Error };

/** Messages of a port in their order, taken at once where there is one, else awaited. */
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

  /** The oldest message, if any has come; needs no turn of the event loop. */
  take(): T | undefined {
    for (let next = receiveMessageOnPort(this.port); next; next = receiveMessageOnPort(this.port)) {
      this.#messages.push(next.message as T);
    }
    return this.#messages.shift();
  }

  /** Lets the process live until there is a message, or `wake` is called. */
  async wait(): Promise<void> {
    if (this.#messages.length > 0) return;
    this.port.ref();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.port.unref();
  }

  /** Ends a `wait`, for a reason other than a message. */
  wake(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
