/** @file MultiInput: batches of several inputs beside one another, for models that read more than one kind of data. */

import type { BaseInput } from './baseInput.js';
import type { Batch, BatchSpecs } from './batch.js';
import { foldRows, foldSpecs } from './batchRows.js';
import { InputError } from './inputErrors.js';
import type { ExampleOptions, IdVocabulary, InputState } from './inputSource.js';
import { NamedInputs } from './namedInputs.js';

/**
 * One batch of each input by its name (Pax's MultiInput): `{ text: { ids, … }, images: { inputs, … } }`. The inputs read
 * for the same host and the same purpose as this one. An input whose batches are n times as large has its n rows of each
 * row in a dimension of their own: [batchSize, n, …]. The data ends where the first input ends.
 */
export class MultiInput extends NamedInputs {
  protected override setup(): void {
    super.setup();
    const { inputs, batchSize, isTraining, resetForEval, evalLoopNumBatches } = this.hp;
    const names = Object.keys(inputs);
    for (const [name, input] of Object.entries(inputs)) {
      if (input.batchSize % batchSize !== 0) {
        throw new InputError(
          `MultiInput '${this.name}': inputs.${name}.batchSize: expected a multiple of batchSize ${batchSize}, got ${input.batchSize}.`,
        );
      }
    }
    if (!isTraining && resetForEval && names.length > 1 && (evalLoopNumBatches ?? -1) === -1) {
      throw new InputError(
        `MultiInput '${this.name}': an evaluation to the end of the data reads one input, as inputs end at different ` +
          `batches; got ${names.join(', ')}. Set evalLoopNumBatches to a number of batches.`,
      );
    }
  }

  override batchSpecs(): BatchSpecs {
    return this.mapInputs((input) => foldSpecs(input.batchSpecs(), this.hp.batchSize));
  }

  override async getNext(): Promise<Batch> {
    return this.#batch((input) => input.getNext());
  }

  override async peek(): Promise<Batch> {
    return this.#batch((input) => input.peek());
  }

  override async rowNames(state: InputState): Promise<readonly string[] | null> {
    const rows = Array.from({ length: this.hp.batchSize }, () => [] as string[]);
    for (const [name, input] of Object.entries(this.built)) {
      const own = (await input.rowNames(state[name] as InputState)) ?? [];
      for (const [b, row] of own.entries())
        rows[Math.floor((b * rows.length) / input.batchSize)]!.push(`${name} ${row}`);
    }
    return rows.some((names) => names.length > 0) ? rows.map((names) => names.join(', ')) : null;
  }

  override vocabularyFor(path: string): IdVocabulary | null {
    const [name = '', ...rest] = path.split('.');
    return (this.built[name] ?? this.default).vocabularyFor(rest.join('.'));
  }

  override classNamesFor(path: string): readonly string[] | null {
    const [name = '', ...rest] = path.split('.');
    return this.built[name]?.classNamesFor(rest.join('.')) ?? null;
  }

  /** Of examples by the names of the inputs; one whose rows are n to an example takes a list of n. */
  override async exampleBatch(
    examples: readonly unknown[],
    paths: readonly string[],
    options: ExampleOptions,
  ): Promise<Batch> {
    const batch: Record<string, Batch> = {};
    for (const [name, input] of Object.entries(this.built)) {
      const own = paths
        .filter((path) => path.startsWith(`${name}.`))
        .map((path) => path.slice(name.length + 1));
      if (own.length === 0) continue;
      const each = input.batchSize / this.hp.batchSize;
      const parts = examples.flatMap((example, i) => partOf(example, name, options.first + i));
      if (parts.length !== each * examples.length)
        throw new InputError(
          `'${name}': expected ${each} to an example, ${each * examples.length} in all; got ${parts.length}.`,
        );
      batch[name] = foldRows(
        await input.exampleBatch(parts, own, { ...options, first: options.first * each }),
        examples.length,
      );
    }
    return batch;
  }

  /** All inputs end where one does, and none is ahead of the others: a batch counts once every input has given its own. */
  async #batch(take: (input: BaseInput) => Promise<Batch>): Promise<Batch> {
    const before = this.getState();
    try {
      const batches: Record<string, Batch> = {};
      for (const [name, input] of Object.entries(this.built))
        batches[name] = foldRows(await take(input), this.hp.batchSize);
      return batches;
    } catch (error) {
      this.setState(before);
      throw error;
    }
  }
}

/** The part of an example that an input reads. @throws InputError for one without it */
function partOf(example: unknown, name: string, i: number): unknown {
  if (typeof example === 'object' && example !== null && Object.hasOwn(example, name))
    return (example as Record<string, unknown>)[name];
  throw new InputError(`example ${i}: expected an object with '${name}'`);
}
