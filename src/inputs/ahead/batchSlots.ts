/**
 * @file Batches in slots of shared memory, which one thread writes and another copies from. With transferred buffers,
 * a receiver with a large heap spent most of its time in garbage collection.
 */
import { hostArrayIn, sizeOf } from '../../compiler/program/index.js';
import { arraysOf, type Batch, type BatchSpecs, mapSpecs, specsOf } from '../batch.js';

/** Arrays begin at multiples of this. */
const ALIGNMENT = 8;
const aligned = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

/** A batch in a slot: its arrays one behind the other, in the order of the specs. */
export interface SlottedBatch {
  readonly slot: number;
  readonly specs: BatchSpecs;
  /** The slot's memory from here on, where it has another one. */
  readonly memory: SharedArrayBuffer | undefined;
}

/** The side that writes. */
export class SlotWriter {
  readonly #slots: SharedArrayBuffer[] = [];
  readonly #free: number[] = [];

  /** Copies a batch into a free slot, or another one. */
  write(batch: Batch): SlottedBatch {
    const arrays = [...arraysOf(batch)].map(([, { data }]) => data);
    const size = arrays.reduce((sum, { byteLength }) => sum + aligned(byteLength), 0);
    const slot = this.#free.pop() ?? this.#slots.length;
    const before = this.#slots[slot];
    const memory = before !== undefined && before.byteLength >= size ? before : new SharedArrayBuffer(size);
    this.#slots[slot] = memory;
    let at = 0;
    for (const { buffer, byteOffset, byteLength } of arrays) {
      new Uint8Array(memory, at, byteLength).set(new Uint8Array(buffer, byteOffset, byteLength));
      at += aligned(byteLength);
    }
    return { slot, specs: specsOf(batch), memory: memory === before ? undefined : memory };
  }

  /** The batch in a slot has been read. */
  release(slot: number): void {
    this.#free.push(slot);
  }
}

/** The side that reads. */
export class SlotReader {
  readonly #slots: SharedArrayBuffer[] = [];

  /** A copy of a batch, which the caller owns. */
  read({ slot, specs, memory = this.#slots[slot]! }: SlottedBatch): Batch {
    this.#slots[slot] = memory;
    let at = 0;
    return mapSpecs(specs, ({ shape, dtype }) => {
      const data = hostArrayIn(memory, at, dtype, sizeOf(shape)).slice();
      at += aligned(data.byteLength);
      return { shape, dtype, data };
    }) as Batch;
  }
}
