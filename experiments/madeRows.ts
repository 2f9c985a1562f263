/** @file Base of inputs whose rows are made from a seed, and the arrays of their batches. */
import { z } from 'zod';
import { type Batch, RowInput } from '../src/inputs/index.js';
import { type Draw, drawsOf } from './draws.js';

/** Rows of random numbers: those of a row follow from `dataSeed` and its number. */
export abstract class MadeRows extends RowInput.with({
  count: z.int().positive().default(50_000).describe('Rows.'),
  dataSeed: z.int().nonnegative().default(1).describe('Seed of the rows.'),
}) {
  static override readonly isAbstract = true;

  /** Writes a row to position `b` of a batch of padding, whose arrays have these names. Its weight is written for it. */
  protected abstract make(draw: Draw, arrays: Arrays, b: number): void;

  protected override get numRows() {
    return this.hp.count;
  }

  protected override identity() {
    return { count: this.hp.count, dataSeed: this.hp.dataSeed };
  }

  protected override fillRow(row: number, batch: Batch, b: number): void {
    const arrays = batch as Arrays;
    this.make(drawsOf(this.hp.dataSeed, row), arrays, b);
    arrays.weights!.data[b] = 1;
  }
}

/** The arrays of a batch by name. */
export type Arrays = Readonly<Record<string, { readonly data: Float32Array | Int32Array }>>;

const sizeOf = (shape: readonly number[]): number => shape.reduce((size, dim) => size * dim, 1);

/** An array of float32. */
export const floats = (shape: readonly number[], value = 0) => ({
  ...{ shape, dtype: 'float32' as const },
  data: new Float32Array(sizeOf(shape)).fill(value),
});

/** An array of ids, all 0. */
export const ints = (shape: readonly number[]) => ({
  ...{ shape, dtype: 'int32' as const },
  data: new Int32Array(sizeOf(shape)),
});
