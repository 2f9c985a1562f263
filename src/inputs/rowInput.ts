/** @file RowInput: order, sharding, padding and exact resumption of inputs with numbered rows. */

import { BaseInput } from './baseInput.js';
import { type Batch, type BatchSpecs, specsOf } from './batch.js';
import { EndOfData } from './inputErrors.js';
import type { InputState } from './inputSource.js';
import type { JsonValue } from './jsonValue.js';
import { RANDOM_ORDERS, type RandomOrder, type RandomOrderName, streamKey } from './random.js';
import { savedPosition } from './savedPosition.js';

/**
 * Training reads rows endlessly, in a new random order each epoch; otherwise they come once, in order. A global batch
 * takes the next batchSize · numInfeedHosts rows, of which host h gets the h-th run of batchSize. The state is the
 * number of rows consumed, so that a run resumes exactly, even with another number of hosts or batch size.
 */
export abstract class RowInput extends BaseInput.with({}) {
  static override readonly isAbstract = true;
  #position = 0;
  #epoch = -1;
  #order: RandomOrder | undefined;
  #orderName: RandomOrderName = 'keyed permutation';

  /** Number of rows; Infinity for endless data, which defines its own order. */
  protected abstract get numRows(): number;

  /** A batch of padding, freshly allocated. */
  protected abstract emptyBatch(): Batch;

  /** Whether each epoch has its own random order. */
  protected get shuffles(): boolean {
    return this.hp.isTraining;
  }

  /**
   * Writes row `row`, below `numRows`, to position `b` of a batch from `emptyBatch`. All randomness of a row is a
   * function of the seed, `epoch` (completed passes over all rows) and `row`.
   */
  protected abstract fillRow(row: number, batch: Batch, b: number, epoch: number): void;

  /** Calls `fillRow`. */
  protected makeRow(row: number, batch: Batch, b: number, epoch: number): void {
    this.fillRow(row, batch, b, epoch);
  }

  /** Values that the meaning of a saved position depends on, by their names in messages. */
  protected abstract identity(): { readonly [name: string]: JsonValue };

  /** The specs of `emptyBatch`; inputs with large batches override it. */
  override batchSpecs(): BatchSpecs {
    return specsOf(this.emptyBatch());
  }

  override get isEndless(): boolean {
    return this.repeats || this.numRows === Number.POSITIVE_INFINITY;
  }

  override async getNext(): Promise<Batch> {
    const batch = this.#batchAt(this.#position);
    this.#position += this.getGlobalBatchSize();
    return batch;
  }

  override numReaders(most: number): number {
    return most;
  }

  override async skip(batches: number): Promise<void> {
    this.#position += batches * this.getGlobalBatchSize();
  }

  override async peek(): Promise<Batch> {
    return this.skipped.uncounted(async () => this.#batchAt(this.#position));
  }

  override reset(): void {
    this.#position = 0;
    this.#setOrder('keyed permutation');
  }

  override getState(): InputState {
    return { position: this.#position, ...this.#identity() };
  }

  override setState(state: InputState): void {
    const { order } = state;
    this.#setOrder(order === undefined || order === 'Fisher-Yates' ? 'Fisher-Yates' : 'keyed permutation');
    const identity = Object.entries(this.#identity()).filter(
      ([name]) => name !== 'order' || order !== undefined,
    );
    this.#position = savedPosition(this.name, state, Object.fromEntries(identity));
  }

  #setOrder(name: RandomOrderName): void {
    this.#orderName = name;
    this.#order = undefined;
  }

  /** Name of the random order, for the identity of inputs whose rows are drawn with `permuted`. */
  protected get orderName(): RandomOrderName {
    return this.#orderName;
  }

  /** Adds the values that the order of rows depends on, if the data has an end. */
  #identity(): { readonly [name: string]: JsonValue } {
    const own = this.identity();
    if (!this.shuffles || this.numRows === Number.POSITIVE_INFINITY) return own;
    return {
      ...own,
      rows: this.numRows,
      shuffleSeed: this.hp.inputRandomSeed ?? 0,
      order: this.#orderName,
    };
  }

  #batchAt(position: number): Batch {
    const { batchSize, infeedHostIndex } = this.hp;
    const end = this.repeats && this.numRows > 0 ? Number.POSITIVE_INFINITY : this.numRows;
    if (position >= end) throw new EndOfData(this.name);
    const first = position + infeedHostIndex * batchSize;
    const batch = this.emptyBatch();
    // Rows past the end are padding of weight 0.
    const count = Math.min(batchSize, end - first);
    for (let b = 0; b < count; b++) {
      const { epoch, item } = this.#rowAt(first + b);
      this.makeRow(item, batch, b, epoch);
    }
    return batch;
  }

  /** Epoch and item of the n-th draw from `size` items, in a random order per epoch. */
  protected permuted(n: number, size: number): { readonly epoch: number; readonly item: number } {
    const epoch = Math.floor(n / size);
    if (this.#order?.size !== size || epoch !== this.#epoch) {
      const key = streamKey(this.hp.inputRandomSeed ?? 0, 'rowOrder', epoch);
      this.#order = RANDOM_ORDERS[this.#orderName](key, size);
      this.#epoch = epoch;
    }
    return { epoch, item: this.#order.at(n - epoch * size) };
  }

  /** The n-th row to be consumed, with its epoch. */
  #rowAt(n: number): { readonly epoch: number; readonly item: number } {
    const { numRows } = this;
    if (numRows === Number.POSITIVE_INFINITY) return { epoch: 0, item: n };
    return this.shuffles ? this.permuted(n, numRows) : { epoch: Math.floor(n / numRows), item: n % numRows };
  }
}
