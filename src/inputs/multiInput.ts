/** @file MultiInput: batches of several inputs beside one another, for models that read more than one kind of data. */
import { z } from 'zod';
import { build, type Config, copyWith, sub } from '../hparams/index.js';
import { BaseInput } from './baseInput.js';
import type { Batch, BatchSpecs } from './batch.js';
import { foldRows, foldSpecs } from './batchRows.js';
import type { DataIdentity } from './dataIdentity.js';
import { InputError } from './inputErrors.js';
import type { ExampleOptions, IdRows, IdVocabulary, InputState } from './inputSource.js';
import { type PartStates, partsBelow } from './recordedParts.js';

type InputsByName = Readonly<Record<string, BaseInput>>;

/**
 * One batch of each input by its name (Pax's MultiInput): `{ text: { ids, … }, images: { inputs, … } }`. The inputs read
 * for the same host and the same purpose as this one. An input whose batches are n times as large has its n rows of each
 * row in a dimension of their own: [batchSize, n, …]. The data ends where the first input ends.
 */
export class MultiInput extends BaseInput.with({
  inputs: z
    .record(z.string().min(1), sub(BaseInput, null))
    .refine((inputs) => Object.keys(inputs).length > 0, { error: 'must name at least one input' })
    .describe('Inputs by the names of their batches; each batchSize is a multiple of this one.'),
  defaultInput: z
    .string()
    .nullable()
    .default(null)
    .describe('Name of the input whose tokenizer decodes ids; null is the first.'),
}) {
  #inputs: InputsByName | undefined;

  protected override setup(): void {
    super.setup();
    const { inputs, defaultInput, batchSize, isTraining, resetForEval, evalLoopNumBatches } = this.hp;
    const names = Object.keys(inputs);
    if (defaultInput !== null && !names.includes(defaultInput)) {
      throw new InputError(
        `MultiInput '${this.name}': defaultInput: expected one of ${names.join(', ')}; got '${defaultInput}'.`,
      );
    }
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

  override get isEndless(): boolean {
    return Object.values(this.#built).every((input) => input.isEndless);
  }

  override batchSpecs(): BatchSpecs {
    return this.#map((input) => foldSpecs(input.batchSpecs(), this.hp.batchSize));
  }

  override async getNext(): Promise<Batch> {
    return this.#batch((input) => input.getNext());
  }

  override async peek(): Promise<Batch> {
    return this.#batch((input) => input.peek());
  }

  override reset(): void {
    for (const input of Object.values(this.#built)) input.reset();
  }

  override getState(): InputState {
    return this.#map((input) => input.getState());
  }

  override setState(state: InputState): void {
    const names = Object.keys(this.#built);
    const missing = names.filter((name) => typeof state[name] !== 'object' || state[name] === null);
    if (missing.length > 0) {
      throw new InputError(
        `Input '${this.name}' cannot resume from the saved state: it lacks ${missing.join(', ')}.`,
      );
    }
    for (const [name, input] of Object.entries(this.#built)) input.setState(state[name] as InputState);
  }

  override async rowNames(state: InputState): Promise<readonly string[] | null> {
    const rows = Array.from({ length: this.hp.batchSize }, () => [] as string[]);
    for (const [name, input] of Object.entries(this.#built)) {
      const own = (await input.rowNames(state[name] as InputState)) ?? [];
      for (const [b, row] of own.entries())
        rows[Math.floor((b * rows.length) / input.batchSize)]!.push(`${name} ${row}`);
    }
    return rows.some((names) => names.length > 0) ? rows.map((names) => names.join(', ')) : null;
  }

  override vocabularyFor(path: string): IdVocabulary | null {
    const [name = '', ...rest] = path.split('.');
    return (this.#built[name] ?? this.#default).vocabularyFor(rest.join('.'));
  }

  override classNamesFor(path: string): readonly string[] | null {
    const [name = '', ...rest] = path.split('.');
    return this.#built[name]?.classNamesFor(rest.join('.')) ?? null;
  }

  /** Of examples by the names of the inputs; one whose rows are n to an example takes a list of n. */
  override async exampleBatch(
    examples: readonly unknown[],
    paths: readonly string[],
    options: ExampleOptions,
  ): Promise<Batch> {
    const batch: Record<string, Batch> = {};
    for (const [name, input] of Object.entries(this.#built)) {
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

  override idsToStrings(ids: IdRows, lengths?: ArrayLike<number>): string[] {
    return this.#default.idsToStrings(ids, lengths);
  }

  override dataIdentity(): DataIdentity {
    return this.#joined((input) => input.dataIdentity());
  }

  override recordedParts(): PartStates {
    const parts = this.#map((input) => input.recordedParts());
    return Object.assign(
      {},
      ...Object.entries(parts).map(([name, own]) => partsBelow(own, ['inputs', name])),
    );
  }

  override knownIdentity(): DataIdentity | null {
    const known = Object.values(this.#built).map((input) => input.knownIdentity());
    return known.includes(null) ? null : this.#joined((input) => input.knownIdentity()!);
  }

  override async close(): Promise<void> {
    await Promise.all(Object.values(this.#inputs ?? {}).map((input) => input.close()));
  }

  /** The inputs, for this host; a batch of theirs is the n-th for the n-th of this one. */
  get #built(): InputsByName {
    const { isTraining, numInfeedHosts, infeedHostIndex, inputs } = this.hp;
    const shared = { isTraining, numInfeedHosts, infeedHostIndex };
    this.#inputs ??= Object.fromEntries(
      Object.entries(inputs).map(([name, config]: [string, Config<BaseInput>]) => [
        name,
        build(copyWith(config, { name: config.name ?? `${this.name}.${name}`, ...shared })),
      ]),
    );
    for (const input of Object.values(this.#inputs)) input.skipped = this.skipped;
    return this.#inputs;
  }

  get #default(): BaseInput {
    const inputs = this.#built;
    return inputs[this.hp.defaultInput ?? Object.keys(inputs)[0]!]!;
  }

  #map<T>(make: (input: BaseInput) => T): Record<string, T> {
    return Object.fromEntries(Object.entries(this.#built).map(([name, input]) => [name, make(input)]));
  }

  /** All inputs end where one does, and none is ahead of the others: a batch counts once every input has given its own. */
  async #batch(take: (input: BaseInput) => Promise<Batch>): Promise<Batch> {
    const before = this.getState();
    try {
      const batches: Record<string, Batch> = {};
      for (const [name, input] of Object.entries(this.#built))
        batches[name] = foldRows(await take(input), this.hp.batchSize);
      return batches;
    } catch (error) {
      this.setState(before);
      throw error;
    }
  }

  #joined(identityOf: (input: BaseInput) => DataIdentity): DataIdentity {
    const identities = this.#map(identityOf);
    const { vocabSize, tokenizer } = identityOf(this.#default);
    const files = Object.values(identities).flatMap((identity) => identity.files ?? []);
    const folders = Object.values(identities).flatMap((identity) => identity.folders ?? []);
    const contents = Object.entries(identities)
      .filter(([, identity]) => identity.contents !== undefined)
      .map(([name, identity]) => `${name}: ${identity.contents}`);
    return {
      ...(vocabSize !== undefined && { vocabSize }),
      ...(tokenizer !== undefined && { tokenizer }),
      ...(files.length > 0 && { files }),
      ...(folders.length > 0 && { folders }),
      ...(contents.length > 0 && { contents: contents.join('; ') }),
    };
  }
}

/** The part of an example that an input reads. @throws InputError for one without it */
function partOf(example: unknown, name: string, i: number): unknown {
  if (typeof example === 'object' && example !== null && Object.hasOwn(example, name))
    return (example as Record<string, unknown>)[name];
  throw new InputError(`example ${i}: expected an object with '${name}'`);
}
