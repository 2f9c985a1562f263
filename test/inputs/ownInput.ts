/** @file An input of one's own, in a module that a prefetch thread loads by its URL. */

import { z } from 'zod';
import { BaseInput, type Batch, EndOfData, type InputState, RowInput } from '../../src/inputs/index.js';

/** Counts: each batch is one nested array, of another length from batch 5 on. Fails or ends where told. */
export class CountingInput extends BaseInput.with({
  failAt: z.int().nullable().default(null),
  numBatches: z.int().default(20),
}) {
  #count = 0;

  override async getNext(): Promise<Batch> {
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (this.#count === this.hp.failAt) throw new Error(`cannot count to ${this.#count}`);
    if (this.#count >= this.hp.numBatches) throw new EndOfData(this.name);
    const length = this.#count < 5 ? 3 : 4;
    const data = new Float32Array(length).fill(this.#count++);
    const flags = { shape: [1, 1], dtype: 'bool', data: Uint8Array.of(1) } as const;
    return { outer: { count: { shape: [1, length], dtype: 'float32', data } }, flags };
  }

  override reset(): void {
    this.#count = 0;
  }

  override getState(): InputState {
    return { count: this.#count };
  }

  override setState(state: InputState): void {
    this.#count = state.count as number;
  }
}

/** Numbered rows that each take a while to make. Row `failAt` can't be made. */
export class SlowRows extends RowInput.with({
  numRows: z.int().default(100),
  milliseconds: z.number().default(0),
  failAt: z.int().nullable().default(null),
}) {
  protected override get numRows(): number {
    return this.hp.numRows;
  }

  protected override emptyBatch(): Batch {
    const { batchSize } = this.hp;
    return { x: { shape: [batchSize], dtype: 'int32', data: new Int32Array(batchSize) } };
  }

  protected override fillRow(row: number, batch: Batch, b: number): void {
    if (row === this.hp.failAt) throw new Error(`cannot make row ${row}`);
    for (const end = performance.now() + this.hp.milliseconds; performance.now() < end; );
    (batch.x as { data: Int32Array }).data[b] = row + 1;
  }

  protected override identity() {
    return {};
  }
}
