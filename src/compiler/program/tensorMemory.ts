/** @file Memory that calls are bound to: buffers of the host, which an engine may hold on its device from run to run. */
import type { BoundArray } from './tensors.js';

/** The copy of a memory's buffers on an engine's device. */
export interface DeviceCopy {
  /** Copies into the host's buffers what the device has newer. */
  toHost(): Promise<void>;
  /** Forgets what it has, as the host has changed it. */
  drop(): void;
}

const memories = new WeakMap<ArrayBufferLike, TensorMemory>();

/**
 * Buffers whose owner lets engines keep their contents on a device: programs see what programs wrote, wherever it is, and
 * the owner calls `toHost` before it reads the buffers itself, and `wrote` after it has changed them. Arrays over any other
 * buffer are read and written by each run.
 */
export class TensorMemory {
  #owner: string | undefined;
  #copy: DeviceCopy | undefined;

  /** @param arrays the buffers, by arrays in them. */
  constructor(arrays: readonly BoundArray[]) {
    for (const { buffer } of arrays) memories.set(buffer, this);
  }

  /** The memory that an array is a part of; undefined for the host's alone. */
  static of({ buffer }: BoundArray): TensorMemory | undefined {
    return memories.get(buffer);
  }

  /** The memories that arrays are parts of. */
  static among(arrays: readonly BoundArray[]): TensorMemory[] {
    return [...new Set(arrays.flatMap((array) => TensorMemory.of(array) ?? []))];
  }

  /** The copy on a device, by the device's name. One on another device gives way. */
  async copyOn<C extends DeviceCopy>(device: string, make: () => C): Promise<C> {
    if (this.#owner !== device) {
      await this.close();
      [this.#owner, this.#copy] = [device, make()];
    }
    return this.#copy as C;
  }

  /** Brings the host's buffers up to date. */
  async toHost(): Promise<void> {
    await this.#copy?.toHost();
  }

  /** Brings the host's buffers up to date and frees the copies. */
  async close(): Promise<void> {
    await this.toHost();
    this.wrote();
  }

  /** Says that the host has changed the buffers; copies are dropped. What devices had newer is lost. */
  wrote(): void {
    this.#copy?.drop();
  }
}
