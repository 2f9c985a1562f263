/** @file ScheduledInput: the rows of another input in batches whose size and length change at given steps. */
import { z } from 'zod';
import { newHostArray, sizeOf } from '../compiler/program/index.js';
import { build, type Config, ConfigError, copyWith, sub } from '../hparams/index.js';
import { BaseInput, shareOfRows } from './baseInput.js';
import { type Batch, type BatchSpecs, mapBatch, mapSpecs } from './batch.js';
import { copyRows, paddingLike, specsWithRows } from './batchRows.js';
import { InputAdaptor } from './inputAdaptor.js';
import { InputError } from './inputErrors.js';
import type { BatchKind, InputSource, InputState } from './inputSource.js';

/** One phase: what holds from a step on, until the next one. */
const phase = z.strictObject({
  fromStep: z.int().nonnegative().describe('The first step of the phase.'),
  batchSize: z.int().positive().optional().describe("Rows of a batch; absent: the input's."),
  seqLen: z.int().positive().optional().describe("Positions of a row; absent: the input's."),
});

type Phase = z.output<typeof phase>;

/**
 * Batches that grow. The order of the rows is the input's, whatever the phases: a batch of n times the input's size is
 * the next n batches of it. Rows are cut to the first `seqLen` positions, as in the warm-up of Li et al. (2021), so the rest of
 * a row is not trained on in that phase.
 */
export class ScheduledInput extends InputAdaptor.with({
  batchSize: z
    .int()
    .positive()
    .default(1)
    .describe('Not read: phases and the input say how many rows a batch has.'),
  input: sub(BaseInput, null).describe(
    'The input, whose batches have the size of the smallest batch, or a divisor of it.',
  ),
  phases: z
    .array(phase)
    .min(1)
    .refine(([first]) => first!.fromStep === 0, { error: 'expected the first phase from step 0 on' })
    .refine((phases) => phases.every(({ fromStep }, i) => i === 0 || fromStep > phases[i - 1]!.fromStep), {
      error: 'expected phases in the order of their steps',
    })
    .describe('Sizes and lengths by step.'),
}) {
  static override withShareOfRows(config: Config<ScheduledInput>, hosts: number): Config<BaseInput> {
    const phases = config.phases.map(({ batchSize, ...rest }) => {
      if (batchSize === undefined) return rest;
      if (batchSize % hosts === 0) return { ...rest, batchSize: batchSize / hosts };
      throw new ConfigError(
        `Input '${config.name ?? 'train'}': the phase from step ${rest.fromStep} on has a batchSize of ${batchSize}, which ` +
          `${hosts} hosts cannot share evenly: set it to a multiple of ${hosts}, or start fewer.`,
        { path: 'phases' },
      );
    });
    return copyWith(config, { phases, input: shareOfRows(config.input, hosts) });
  }

  /** Batches given. */
  #count = 0;

  /** @throws InputError for a batch that is no multiple of the input's, or positions that rows do not have */
  protected override setup(): void {
    super.setup();
    for (const each of this.hp.phases) this.#specsOf(each);
  }

  protected override made(): BaseInput {
    const { input, isTraining, numInfeedHosts, infeedHostIndex } = this.hp;
    const name = input.name ?? this.name;
    return build(copyWith(input, { name, isTraining, numInfeedHosts, infeedHostIndex }));
  }

  override get batchSize(): number {
    return this.#rowsOf(this.#phaseOf(this.#count));
  }

  override getGlobalBatchSize(): number {
    return this.batchSize * this.hp.numInfeedHosts;
  }

  override batchSpecs(): BatchSpecs {
    return this.#specsOf(this.#phaseOf(0));
  }

  override kindOf({ count }: InputState): BatchKind {
    return { name: this.#kindName(this.#phaseOf(count as number)) };
  }

  override kindSpecs(): ReturnType<InputSource['kindSpecs']> {
    return Object.fromEntries(
      this.hp.phases.map((each) => [this.#kindName(each), { specs: this.#specsOf(each) }]),
    );
  }

  override async getNext(): Promise<Batch> {
    const now = this.#phaseOf(this.#count);
    const { batchSize } = this.input;
    const [rows, before] = [this.#rowsOf(now), this.input.getState()];
    let made: Batch | undefined;
    try {
      for (let row = 0; row < rows; row += batchSize) {
        const batch = await this.input.getNext();
        if (rows === batchSize) made = batch;
        else copyRows(batch, 0, batchSize, (made ??= paddingLike(batch, rows)), row);
      }
    } catch (error) {
      this.input.setState(before);
      throw error;
    }
    this.#count++;
    return now.seqLen === undefined ? made! : cut(made!, now.seqLen);
  }

  override reset(): void {
    this.input.reset();
    this.#count = 0;
  }

  override getState(): InputState {
    return { input: this.input.getState(), count: this.#count };
  }

  override setState({ input, count }: InputState): void {
    if (typeof input !== 'object' || input === null || !Number.isSafeInteger(count) || (count as number) < 0)
      throw new InputError(
        `Input '${this.name}': expected a state with that of the input and the number of batches, got ${JSON.stringify({ input, count })}.`,
      );
    this.input.setState(input as InputState);
    this.#count = count as number;
  }

  /** Names of the rows of the first of the input's batches; those of the others follow from reading them. */
  override rowNames({ input, count }: InputState): Promise<readonly string[] | null> {
    const isOne = this.#rowsOf(this.#phaseOf(count as number)) === this.input.batchSize;
    return isOne ? this.input.rowNames(input as InputState) : Promise.resolve(null);
  }

  #phaseOf(batch: number): Phase {
    return this.hp.phases.findLast(({ fromStep }) => fromStep <= batch)!;
  }

  #rowsOf({ batchSize }: Phase): number {
    return batchSize ?? this.input.batchSize;
  }

  #kindName(each: Phase): string {
    return `${this.#rowsOf(each)} rows${each.seqLen === undefined ? '' : ` of ${each.seqLen}`}`;
  }

  #specsOf(each: Phase): BatchSpecs {
    const rows = this.#rowsOf(each);
    const [own, at] = [this.input.batchSize, `phases[${this.hp.phases.indexOf(each)}]`];
    if (rows % own !== 0)
      throw new InputError(
        `Input '${this.name}': ${at}.batchSize: expected a multiple of input.batchSize ${own}, got ${rows}.`,
      );
    const specs = specsWithRows(this.input.batchSpecs(), () => rows);
    const { seqLen } = each;
    if (seqLen === undefined) return specs;
    return mapSpecs(specs, ({ shape, dtype }, name) => {
      if (shape.length > 1 && shape[1]! < seqLen)
        throw new InputError(
          `Input '${this.name}': ${at}.seqLen: expected at most ${shape[1]}, the positions of '${name}', got ${seqLen}.`,
        );
      return { shape: cutShape(shape, seqLen), dtype };
    }) as BatchSpecs;
  }
}

const cutShape = ([rows, positions, ...rest]: readonly number[], length: number): readonly number[] =>
  positions === undefined ? [rows!] : [rows!, length, ...rest];

/** The first `length` positions of each row; arrays [rows] as they are. */
const cut = (batch: Batch, length: number): Batch =>
  mapBatch(batch, ({ shape, dtype, data }) => {
    if (shape.length < 2 || shape[1] === length) return { shape, dtype, data };
    const to = cutShape(shape, length);
    const [from, size] = [sizeOf(shape.slice(1)), sizeOf(to.slice(1))];
    const made = newHostArray(dtype, sizeOf(to));
    for (let row = 0; row < shape[0]!; row++)
      made.set(data.subarray(row * from, row * from + size) as never, row * size);
    return { shape: to, dtype, data: made };
  }) as Batch;
