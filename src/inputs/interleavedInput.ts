/** @file InterleavedInput: each batch of one of several inputs, by turns or by chance. */
import { z } from 'zod';
import { type Config, Configurable, copyWith, didYouMean, instance } from '../hparams/index.js';
import type { BaseInput } from './baseInput.js';
import type { Batch, BatchSpecs, BatchUnit } from './batch.js';
import { InputError } from './inputErrors.js';
import type { BatchKind, IdVocabulary, InputSource, InputState } from './inputSource.js';
import { NamedInputs, sharesOfRows } from './namedInputs.js';
import { drawBelow, streamKey } from './random.js';

/** Batches whose input is looked up before the first one. */
const CHECKED = 10_000;

/** Says which input the n-th batch comes from: a pure function, so that runs that go on read the same (Trax's which_task). */
export abstract class BaseWhichInput extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** Name of the input of batch number `batch`, from 0. @param names those that there are, in order */
  abstract at(batch: number, names: readonly string[]): string;

  /** The share of each input's batches, from 0 to 1: by default, of the first ones. */
  shares(names: readonly string[]): Record<string, number> {
    return sharesAmong(Array.from({ length: CHECKED }, (_, batch) => this.at(batch, names)));
  }
}

function sharesAmong(drawn: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of drawn) counts[name] = (counts[name] ?? 0) + 1;
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, count / drawn.length]));
}

/** By turns. */
export class InTurn extends BaseWhichInput.with({
  pattern: z
    .array(z.string().min(1))
    .nullable()
    .default(null)
    .describe('Names in the order of batches, over and over; null: each input once.'),
}) {
  override at(batch: number, names: readonly string[]): string {
    const pattern = this.hp.pattern ?? names;
    return pattern[batch % pattern.length]!;
  }

  override shares(names: readonly string[]): Record<string, number> {
    return sharesAmong(this.hp.pattern ?? names);
  }
}

/** By chance. */
export class ByWeight extends BaseWhichInput.with({
  weights: z
    .record(z.string().min(1), z.number().nonnegative())
    .refine((weights) => Object.values(weights).some((weight) => weight > 0), {
      error: 'expected a weight above 0',
    })
    .describe('Weights by name, which need not add up to 1.'),
  randomSeed: z.int().nonnegative().default(0).describe('Seed of the draws.'),
}) {
  override at(batch: number): string {
    const { weights, randomSeed } = this.hp;
    const entries = Object.entries(weights).filter(([, weight]) => weight > 0);
    const total = entries.reduce((sum, [, weight]) => sum + weight, 0);
    let rest = (drawBelow(streamKey(randomSeed, 'whichInput'), batch, 2 ** 32) / 2 ** 32) * total;
    return (entries.find(([, weight]) => (rest -= weight) < 0) ?? entries.at(-1)!)[0];
  }

  override shares(): Record<string, number> {
    const total = sum(this.hp.weights);
    return Object.fromEntries(
      Object.entries(this.hp.weights).map(([name, weight]) => [name, weight / total]),
    );
  }
}

/**
 * Batches of several inputs one after the other, each in its own order and shape. Inputs whose names are those of a
 * MultiTask's `auxiliaryTasks` train these.
 */
export class InterleavedInput extends NamedInputs.with({
  batchSize: z.int().positive().default(1).describe('Not read: each input has batches of its own size.'),
  which: instance(BaseWhichInput, () => InTurn.config()).describe('The input of each batch.'),
}) {
  static override withShareOfRows(config: Config<InterleavedInput>, hosts: number): Config<BaseInput> {
    return copyWith(config, { inputs: sharesOfRows(config, hosts) });
  }

  /** Batches that each input has given. */
  #counts: Record<string, number> = {};

  /** @throws InputError for a name that is none of the inputs' */
  protected override setup(): void {
    super.setup();
    for (let batch = 0; batch < CHECKED; batch++) this.#at(batch);
    this.#counts = this.#zeros();
  }

  override get batchSize(): number {
    return this.built[this.#at(0)]!.batchSize;
  }

  override getGlobalBatchSize(): number {
    return this.built[this.#at(0)]!.getGlobalBatchSize();
  }

  override get batchUnit(): BatchUnit {
    return this.built[this.#at(0)]!.batchUnit;
  }

  override batchSpecs(): BatchSpecs {
    return this.built[this.#at(0)]!.batchSpecs();
  }

  override async getNext(): Promise<Batch> {
    const name = this.#at(sum(this.#counts));
    const batch = await this.built[name]!.getNext();
    this.#counts = { ...this.#counts, [name]: this.#counts[name]! + 1 };
    return batch;
  }

  override reset(): void {
    super.reset();
    this.#counts = this.#zeros();
  }

  override getState(): InputState {
    return { inputs: super.getState(), counts: this.#counts };
  }

  override setState(state: InputState): void {
    super.setState(Object(state.inputs));
    this.#counts = { ...this.#zeros(), ...Object(state.counts) };
  }

  override kindOf({ inputs, counts }: InputState): BatchKind {
    const before = counts as Readonly<Record<string, number>>;
    const part = this.#at(sum(before));
    const own = this.built[part]!.kindOf((inputs as Record<string, InputState>)[part]!);
    return { name: own === null ? part : `${part}/${own.name}`, part, counts: before };
  }

  override kindSpecs(): ReturnType<InputSource['kindSpecs']> {
    const kinds = Object.entries(this.built).flatMap(([part, input]) =>
      Object.entries(input.kindSpecs() ?? { '': { specs: input.batchSpecs() } }).map(
        ([name, { specs }]) => [name === '' ? part : `${part}/${name}`, { part, specs }] as const,
      ),
    );
    return Object.fromEntries(kinds);
  }

  override partShares(): Record<string, number> {
    return this.hp.which.shares(Object.keys(this.hp.inputs));
  }

  override vocabularyFor(path: string): IdVocabulary | null {
    return this.default.vocabularyFor(path);
  }

  override classNamesFor(path: string): readonly string[] | null {
    return this.default.classNamesFor(path);
  }

  override async rowNames({ inputs, counts }: InputState): Promise<readonly string[] | null> {
    const part = this.#at(sum(counts as Record<string, number>));
    return this.built[part]!.rowNames((inputs as Record<string, InputState>)[part]!);
  }

  #zeros(): Record<string, number> {
    return Object.fromEntries(Object.keys(this.hp.inputs).map((name) => [name, 0]));
  }

  #at(batch: number): string {
    const { which, inputs } = this.hp;
    const names = Object.keys(inputs);
    const name = which.at(batch, names);
    if (names.includes(name)) return name;
    throw new InputError(
      `Input '${this.name}': which (${which.constructor.name}) takes batch ${batch} from '${name}', which is none of its ` +
        `inputs.${didYouMean(String(name), names)} They are: ${names.join(', ')}.`,
    );
  }
}

const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((a, b) => a + b, 0);
