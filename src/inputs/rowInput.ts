/** @file RowInput: an input whose data is numbered rows. Sharding, padding and exact resume live here, once. */

import { BaseInput } from './baseInput.js';
import { type Batch, type BatchSpecs, specsOf } from './batch.js';
import { EndOfData, InputError } from './errors.js';
import type { InputState, JsonValue } from './inputSource.js';

/**
 * Rows are given out in their order: a batch of all hosts together takes the next batchSize · numInfeedHosts of
 * them, and host h fills its batch with the h-th run of batchSize. The one thing to remember is how many rows were
 * given out, so a run goes on exactly where it stopped, also with another number of hosts or another batch size.
 */
export abstract class RowInput extends BaseInput.with({}) {
  static override readonly isAbstract = true;
  #position = 0;

  /** How many rows the data has; Infinity for data without end. Rows from there on are padding of weight 0. */
  protected abstract get numRows(): number;

  /** A batch of padding, freshly allocated. */
  protected abstract emptyBatch(): Batch;

  /** Writes row `row` (counted on through the epochs) to place `b` of a batch made by `emptyBatch`. */
  protected abstract fillRow(row: number, batch: Batch, b: number): void;

  /** What must be the same for a saved position to mean the same rows, by the name that messages give it. */
  protected abstract identity(): { readonly [name: string]: JsonValue };

  /** Those of `emptyBatch`; inputs of large batches say it without making one. */
  override batchSpecs(): BatchSpecs {
    return specsOf(this.emptyBatch());
  }

  override async getNext(): Promise<Batch> {
    const batch = this.#batchAt(this.#position);
    this.#position += this.getGlobalBatchSize();
    return batch;
  }

  override async peek(): Promise<Batch> {
    return this.#batchAt(this.#position);
  }

  override reset(): void {
    this.#position = 0;
  }

  override getState(): InputState {
    return { position: this.#position, ...this.identity() };
  }

  override setState(state: InputState): void {
    const { position, ...saved } = state;
    if (typeof position !== 'number' || !Number.isSafeInteger(position) || position < 0) {
      throw new InputError(
        `Input '${this.name}': a state has a position that is 0 or a positive integer, got ${JSON.stringify(state)}.`,
      );
    }
    const changed = Object.entries(this.identity())
      .filter(([name, now]) => now !== saved[name])
      .map(([name, now]) => `${name} is ${now}, was ${saved[name] ?? 'not recorded'}`);
    if (changed.length > 0) {
      throw new InputError(
        `Input '${this.name}' cannot go on from the saved state, for its data has changed since: ${changed.join('; ')}. Bring back what it was, or start a new run in another directory.`,
      );
    }
    this.#position = position;
  }

  #batchAt(position: number): Batch {
    if (position >= this.numRows) throw new EndOfData(this.name);
    const { batchSize, infeedHostIndex } = this.hp;
    const first = position + infeedHostIndex * batchSize;
    const batch = this.emptyBatch();
    const count = Math.min(batchSize, this.numRows - first);
    for (let b = 0; b < count; b++) this.fillRow(first + b, batch, b);
    return batch;
  }
}
