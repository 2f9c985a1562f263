/** @file What the main thread and a prefetch thread say to each other. */

import type { MessagePort } from 'node:worker_threads';
import { receiveMessageOnPort } from 'node:worker_threads';
import type { JsonDocument } from '../hparams/index.js';
import type { Batch } from './batch.js';
import type { BatchLayout } from './batchLayout.js';
import type { InputState } from './inputSource.js';

/** What a prefetch thread is started with. */
export interface PrefetchWorkerData {
  /** The input's config. */
  readonly document: JsonDocument;
  /** Modules (file URLs) that export classes of the config, loaded where it names others than those of inputs. */
  readonly modules: readonly string[];
  readonly port: MessagePort;
  /** int32 words, by `Word`. */
  readonly control: SharedArrayBuffer;
}

/** Words of the control memory. */
export const Word = {
  /** Counts everything that the main thread did; the thread sleeps on it. */
  wake: 0,
  /** How many batches the main thread took out of slots. */
  taken: 1,
} as const;

/** To the thread: forget what was read ahead, and read on from `state`. */
export interface StartCommand {
  readonly generation: number;
  readonly state: InputState;
  /** The slots, layout.size bytes each: so many batches may wait. */
  readonly memory: SharedArrayBuffer;
  readonly layout: BatchLayout;
}

/** From the thread. Batches and ends carry the generation of the command that they belong to. */
export type PrefetchMessage =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'batch';
      readonly generation: number;
      /** The slot that holds it, or the batch itself where it does not fit the layout. */
      readonly content: number | Batch;
      /** The input's state after it. */
      readonly state: InputState;
    }
  | { readonly kind: 'end'; readonly generation: number; readonly state: InputState }
  | { readonly kind: 'error'; readonly generation: number; readonly error: Error };

/** Messages of a port in their order, to be taken at once where there is one and to be awaited where there is none. */
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
