/** @file RebatchedInput: the rows of another input in batches of another size, shared between hosts. */
import { z } from 'zod';
import { build, copyWith, sub } from '../hparams/index.js';
import { BaseInput } from './baseInput.js';
import type { Batch, BatchSpecs } from './batch.js';
import { copyRows, paddingLike, rowsOf, specsWithRows } from './batchRows.js';
import { InputAdaptor } from './inputAdaptor.js';
import { EndOfData, InputError } from './inputErrors.js';
import { type InputState, untilEnd } from './inputSource.js';

/**
 * The rows of an input that knows nothing of hosts, or has batches of a fixed size. Every host reads all of them: a
 * global batch takes the next batchSize · numInfeedHosts rows, of which host h gets the h-th run of batchSize. In
 * evaluations all hosts end after the same number of batches. (Pax has an adaptor for each: LingvoInputAdaptorNewBatchSize,
 * LingvoEvalAdaptor, LingvoLazyEvalAdaptor.)
 */
export class RebatchedInput extends InputAdaptor.with({
  input: sub(BaseInput, null).describe('The input; it reads as one host alone.'),
  surplus: z
    .enum(['pad', 'drop'])
    .default('pad')
    .describe('Whether the last rows are padded to a batch with rows of weight 0, or dropped.'),
}) {
  /** The inner batch that rows are taken from, and the state before it. */
  #batch: Batch | undefined;
  #before: InputState | null = null;
  /** Rows of it that were taken. */
  #taken = 0;

  protected override made(): BaseInput {
    const { input, isTraining } = this.hp;
    return build(
      copyWith(input, { name: input.name ?? this.name, isTraining, numInfeedHosts: 1, infeedHostIndex: 0 }),
    );
  }

  override batchSpecs(): BatchSpecs {
    return specsWithRows(this.input.batchSpecs(), () => this.hp.batchSize);
  }

  override async getNext(): Promise<Batch> {
    const { batchSize, infeedHostIndex, surplus } = this.hp;
    const all = this.getGlobalBatchSize();
    const first = infeedHostIndex * batchSize;
    let made: Batch | undefined;
    let count = 0;
    while (count < all) {
      const batch = await this.#current();
      if (batch === undefined) break;
      const run = Math.min(rowsOf(batch) - this.#taken, all - count);
      made ??= paddingLike(batch, batchSize);
      // The part of these rows, count … count + run − 1 of the global batch, that is this host's.
      const from = Math.max(count, first);
      const to = Math.min(count + run, first + batchSize);
      if (from < to) copyRows(batch, this.#taken + from - count, to - from, made, from - first);
      this.#taken += run;
      count += run;
    }
    if (made === undefined || (count < all && surplus === 'drop')) throw new EndOfData(this.name);
    return made;
  }

  override reset(): void {
    this.input.reset();
    this.#forget();
  }

  override getState(): InputState {
    return { input: this.#before ?? this.input.getState(), taken: this.#taken };
  }

  override setState({ input, taken }: InputState): void {
    if (
      typeof input !== 'object' ||
      input === null ||
      !Number.isSafeInteger(taken) ||
      (taken as number) < 0
    ) {
      throw new InputError(
        `Input '${this.name}': expected a state with that of the input and the rows taken of a batch, got ${JSON.stringify({ input, taken })}.`,
      );
    }
    this.input.setState(input as InputState);
    this.#forget();
    this.#taken = taken as number;
  }

  /** Those of the input's batches from a state on, which an input of its own passes. */
  override async rowNames({ input: state, taken }: InputState): Promise<readonly string[] | null> {
    const { batchSize, infeedHostIndex } = this.hp;
    const passing = this.made();
    const first = (taken as number) + infeedHostIndex * batchSize;
    const names: string[] = [];
    try {
      passing.setState(state as InputState);
      for (let batch: readonly string[] | null; names.length < first + batchSize; names.push(...batch)) {
        batch = await passing.rowNames(passing.getState());
        if (batch === null) return null;
        if (batch.length === 0) break;
        await passing.skip(1);
      }
    } finally {
      await passing.close();
    }
    return names.slice(first, first + batchSize);
  }

  #forget(): void {
    this.#batch = undefined;
    this.#before = null;
    this.#taken = 0;
  }

  /** The inner batch with the next row; undefined at the end of the data. */
  async #current(): Promise<Batch | undefined> {
    while (this.#batch === undefined || this.#taken >= rowsOf(this.#batch)) {
      if (this.#batch !== undefined) this.#forget();
      const before = this.input.getState();
      const batch = await untilEnd(() => this.input.getNext());
      if (batch === undefined) return undefined;
      this.#before = before;
      this.#batch = batch;
    }
    return this.#batch;
  }
}
