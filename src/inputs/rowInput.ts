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

  /** Name of a row, as messages about the data have it. */
  protected rowName(row: number): string {
    return `row ${row}`;
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
    this.#position = this.#positionOf(state);
  }

  override async rowNames(state: InputState): Promise<readonly string[]> {
    return this.rowsAfter(state).map((row) => this.rowName(row));
  }

  /** The rows of the batch that follows a state. */
  protected rowsAfter(state: InputState): readonly number[] {
    return this.#rowsFrom(this.#positionOf(state)).map(({ item }) => item);
  }

  #positionOf(state: InputState): number {
    const identity = Object.entries(this.#identity()).filter(
      ([name]) => name !== 'order' || state.order !== undefined,
    );
    return savedPosition(this.name, state, Object.fromEntries(identity));
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
    if (position >= this.#end) throw new EndOfData(this.name);
    const batch = this.emptyBatch();
    for (const [b, { epoch, item }] of this.#rowsFrom(position).entries())
      this.makeRow(item, batch, b, epoch);
    return batch;
  }

  get #end(): number {
    return this.repeats && this.numRows > 0 ? Number.POSITIVE_INFINITY : this.numRows;
  }

  /** This host's rows of the batch at a position. Those of the batch past the end are padding of weight 0. */
  #rowsFrom(position: number): { readonly epoch: number; readonly item: number }[] {
    const { batchSize, infeedHostIndex } = this.hp;
    const first = position + infeedHostIndex * batchSize;
    const length = Math.max(0, Math.min(batchSize, this.#end - first));
    return Array.from({ length }, (_, b) => this.#rowAt(first + b));
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
