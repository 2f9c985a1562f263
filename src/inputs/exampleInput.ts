/** @file ExampleInput: an input of numbered rows whose examples may be broken. */
import type { Batch } from './batch.js';
import { RowInput } from './rowInput.js';
import { errorFields } from './skippedExamples.js';

/**
 * A RowInput with a row for each example. `fillRow` throws an InputError with the place of a broken example, before it
 * writes anything. If `onError` is 'skip', the row stays padding, of weight 0: row numbers and state are those of
 * intact data.
 */
export abstract class ExampleInput extends RowInput.with(errorFields) {
  static override readonly isAbstract = true;
  /** The rows that were broken since the last one that was not. */
  readonly #broken = new Set<number>();

  protected override makeRow(row: number, batch: Batch, b: number, epoch: number): void {
    const { skipped } = this;
    const before = skipped.count;
    this.named(() => {
      skipped.attempt(this.hp.onError, () => super.makeRow(row, batch, b, epoch));
      if (skipped.count === before) this.#broken.clear();
      else skipped.check(this.#broken.add(row).size, this.numRows);
    });
  }
}
