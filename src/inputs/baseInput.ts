/** @file BaseInput: the fields and the contract that every input shares (Pax's base_input.BaseInput). */

import { z } from 'zod';
import { explain, readRegularFile, writeWhole } from '../files/index.js';
import { type Config, ConfigError, Configurable, classOf, copyWith } from '../hparams/index.js';
import type { Batch, BatchSpecs, BatchUnit } from './batch.js';
import { padBatch, specsWithRows } from './batchRows.js';
import type { DataIdentity } from './dataIdentity.js';
import { InputError, placed } from './inputErrors.js';
import {
  type BatchKind,
  type ExampleMetrics,
  type ExampleOptions,
  type IdRows,
  type IdVocabulary,
  type InputSource,
  type InputState,
  type RowTraits,
  untilEnd,
} from './inputSource.js';
import { type PartStates, recordedParts } from './recordedParts.js';
import { SkippedExamples } from './skippedExamples.js';

/** A name that also names a directory. */
export const directoryName = z
  .string()
  .regex(/^[a-zA-Z0-9.:_+-]+$/)
  .refine((name) => name !== '.' && name !== '..', {
    error: (issue) => `expected a name that a directory can have, got '${issue.input}'`,
  });

/** When batches are read ahead in a worker thread, and how many. */
export type Prefetch = 'never' | 'where it is slow' | { readonly batches: number };

/**
 * Data for one host. Each of `numInfeedHosts` processes has its own instance with its own `infeedHostIndex`: training
 * batches of different hosts never share a row, and evaluation ends after the same number of batches on every host,
 * padded with rows of weight 0.
 */
export abstract class BaseInput
  extends Configurable.with(
    {
      name: directoryName
        .nullable()
        .default(null)
        .describe("Name in summaries, directories and messages; null is 'train' in training, else 'input'."),
      batchSize: z.int().positive().describe('Rows of a batch on one host.'),
      batchPaddingSize: z
        .int()
        .min(0)
        .default(0)
        .describe('Padding rows, of weight 0, that programs append to each batch.'),
      numInfeedHosts: z.int().positive().default(1).describe('Number of hosts that share the data.'),
      infeedHostIndex: z.int().min(0).default(0).describe('Index of this host.'),
      inputRandomSeed: z.int().min(0).nullable().default(null).describe('Seed of the order; null is 0.'),
      resetForEval: z
        .boolean()
        .default(true)
        .describe(
          'Whether each evaluation starts at the first batch, so that results are comparable; false continues after the ' +
            'previous evaluation and cycles through the data.',
        ),
      evalLoopNumBatches: z
        .int()
        .refine((count) => count > 0 || count === -1, {
          error: (issue) => `evalLoopNumBatches must be positive or -1, found ${issue.input}.`,
        })
        .nullable()
        .default(null)
        .describe(
          'Batches of one evaluation or decode; -1 reads to the end of the data. null is -1 in an evaluation that ' +
            'starts at the first batch of data that ends, else 1.',
        ),
      isTraining: z.boolean().default(false).describe('Whether training reads it: shuffled and endless.'),
      numWorkers: z
        .int()
        .positive()
        .nullable()
        .default(null)
        .describe(
          'Most threads that read ahead, for inputs that can split their batches; null is as many as needed, at most one per core.',
        ),
      prefetchBatches: z
        .int()
        .min(0)
        .nullable()
        .default(null)
        .describe(
          'Batches that openInput reads ahead in a worker thread; null is a few in training if the input is slow, ' +
            'else 0.',
        ),
    },
    (schema) =>
      schema
        .refine(({ infeedHostIndex, numInfeedHosts }) => infeedHostIndex < numInfeedHosts, {
          path: ['infeedHostIndex'],
          error: 'must be below numInfeedHosts, as hosts are counted from 0',
        })
        .refine(({ resetForEval, evalLoopNumBatches }) => resetForEval || evalLoopNumBatches !== -1, {
          path: ['evalLoopNumBatches'],
          error:
            'must be a number of batches if resetForEval is false: -1 reads to the end of the data, and an evaluation ' +
            'that continues after the previous one cycles through it',
        }),
  )
  implements InputSource
{
  static override readonly isAbstract = true;

  /**
   * The config with a share of each batch's rows, for one of `hosts` that read together what it reads alone.
   *
   * @throws ConfigError where the rows cannot be shared evenly
   */
  static withShareOfRows(config: Config<BaseInput>, hosts: number): Config<BaseInput> {
    const { batchSize, name, isTraining } = config;
    if (batchSize % hosts === 0) return copyWith(config, { batchSize: batchSize / hosts });
    throw new ConfigError(
      `Input '${name ?? (isTraining ? 'train' : 'input')}': batchSize is ${batchSize}, which ${hosts} hosts cannot share ` +
        `evenly: set it to a multiple of ${hosts}, or start fewer.`,
      { path: 'batchSize' },
    );
  }
  protected override setup(): void {
    super.setup();
    if (this.repeats && !this.hp.isTraining && this.hp.evalLoopNumBatches === -1) {
      throw new InputError(
        `Input '${this.name}' repeats endlessly, so an evaluation with evalLoopNumBatches -1 would never finish. ` +
          'Set it to a number of batches, or let the data end (repeat, numBatches).',
      );
    }
  }

  /** Examples that this input has left out, with those of inputs that it reads. */
  skipped = new SkippedExamples();

  get name(): string {
    return this.hp.name ?? (this.hp.isTraining ? 'train' : 'input');
  }

  /** `prefetchBatches` with its default: evaluations are mostly over before a thread has started. */
  get prefetch(): Prefetch {
    const { prefetchBatches: batches, isTraining } = this.hp;
    if (batches !== null) return batches === 0 ? 'never' : { batches };
    return isTraining ? 'where it is slow' : 'never';
  }

  /** Rows, as examples; inputs of images, tokens and the like override it. */
  get batchUnit(): BatchUnit {
    return { unit: 'examples', dims: 1 };
  }

  get batchSize(): number {
    return this.hp.batchSize;
  }

  getGlobalBatchSize(): number {
    return this.hp.batchSize * this.hp.numInfeedHosts;
  }

  /** Whether the data starts over after its end, from the config alone. */
  get repeats(): boolean {
    return this.hp.isTraining;
  }

  /** Whether `getNext` gives batches forever, so that an evaluation can't read to the end. */
  get isEndless(): boolean {
    return this.repeats;
  }

  /** Identity of the data; parts that a subclass leaves out are neither recorded nor compared. */
  dataIdentity(): DataIdentity {
    return {};
  }

  recordedParts(): PartStates {
    return recordedParts(this);
  }

  /** The part of `dataIdentity` that follows from the config alone; null where the data must be read. */
  knownIdentity(): DataIdentity | null {
    return {};
  }

  /**
   * Names, shapes and dtypes of the batches, from the config alone: no data is read.
   *
   * @throws InputError unless a subclass overrides it.
   */
  batchSpecs(): BatchSpecs {
    throw new InputError(
      `Input '${this.name}' (${this.constructor.name}) does not declare the shapes of its batches: ` +
        'give the class a batchSpecs() method.',
    );
  }

  /** Traits of rows of token ids, from the config alone; empty for other rows. */
  rowTraits(): RowTraits {
    return {};
  }

  /** Specs of padded batches. @param specs of a kind of batches. @throws InputError as `batchSpecs`. */
  paddedBatchSpecs(specs = this.batchSpecs()): BatchSpecs {
    return specsWithRows(specs, (rows) => rows + this.hp.batchPaddingSize);
  }

  /** A batch with `batchPaddingSize` rows more: their `paddings` are 1, their `exampleIds` -1, all else is 0. */
  padded(batch: Batch): Batch {
    return padBatch(batch, this.hp.batchPaddingSize);
  }

  /** Number of threads, at most `most`, between which batches can be dealt out because `skip` costs next to nothing. */
  numReaders(_most: number): number {
    return 1;
  }

  /** Passes `batches` batches without making them, where a class can; else reads them. Stops at the end of the data. */
  async skip(batches: number): Promise<void> {
    for (let i = 0; i < batches; i++) if ((await untilEnd(() => this.getNext())) === undefined) return;
  }

  async rowNames(_state: InputState): Promise<readonly string[] | null> {
    return null;
  }

  kindOf(_state: InputState): BatchKind | null {
    return null;
  }

  kindSpecs(): ReturnType<InputSource['kindSpecs']> {
    return null;
  }

  /** The share of each part's batches, from 0 to 1, by the names of kinds' parts; null where there are none. */
  partShares(): Readonly<Record<string, number>> | null {
    return null;
  }

  predictMetrics(): ExampleMetrics<ArrayLike<number>> | null {
    return null;
  }

  scoreMetrics(): ExampleMetrics<number> | null {
    return null;
  }

  /** The state of readers together, of which each made a part of the batches; the last one made the last batch. */
  joinStates(states: readonly InputState[]): InputState {
    return states.at(-1)!;
  }

  abstract getNext(): Promise<Batch>;
  abstract reset(): void;
  abstract getState(): InputState;
  abstract setState(state: InputState): void;

  async peek(): Promise<Batch> {
    const state = this.getState();
    try {
      return await this.skipped.uncounted(() => this.getNext());
    } finally {
      this.setState(state);
    }
  }

  async getNextPadded(): Promise<Batch> {
    return this.padded(await this.getNext());
  }

  async peekPadded(): Promise<Batch> {
    return this.padded(await this.peek());
  }

  /** Writes the state to a file. @throws the system's error where it can't be written. */
  save(path: string): void {
    writeWhole(path, `${JSON.stringify(this.getState())}\n`);
  }

  /** Resumes from a file of `save`. @throws InputError for a file that is absent, damaged, or of other data. */
  restore(path: string): void {
    let state: unknown;
    try {
      state = JSON.parse(readRegularFile(path).toString('utf8'));
    } catch (error) {
      throw new InputError(`Input '${this.name}': ${path} holds no state of an input: ${explain(error)}.`, {
        cause: error,
      });
    }
    this.setState(Object(state));
  }

  /** The vocabulary of the ids at a path of the batches (`ids`, `src.ids`); null where ids have no text. */
  vocabularyFor(_path: string): IdVocabulary | null {
    return null;
  }

  /** Names, by id, of the classes for the ids at a path of the batches; null if they have none. */
  classNamesFor(_path: string): readonly string[] | null {
    return null;
  }

  /**
   * A batch of the given examples, one row each, preprocessed as in an evaluation: records, texts, paths or bytes of
   * files. Only fields needed for the arrays at `paths` are read; others (labels, say) may be absent.
   *
   * @throws InputError with the number of the example that does not fit, and unless a subclass overrides it.
   */
  async exampleBatch(
    _examples: readonly unknown[],
    _paths: readonly string[],
    _options: ExampleOptions,
  ): Promise<Batch> {
    throw new InputError(
      `${this.constructor.name} cannot make batches of given examples: give its class an exampleBatch() method.`,
    );
  }

  idsToStrings(ids: IdRows, lengths?: ArrayLike<number>): string[] {
    const vocabulary = this.vocabularyFor('ids');
    if (vocabulary === null)
      throw new InputError(`Input '${this.name}' has no text, so its ids have no strings.`);
    const [rows = 0, length = 0] = ids.shape;
    return Array.from({ length: rows }, (_, row) => {
      const start = row * length;
      const end = start + (lengths?.[row] ?? length);
      return vocabulary.decode(Array.prototype.slice.call(ids.data, start, end));
    });
  }

  async close(): Promise<void> {}

  /** The result of `make`. @throws InputError with the input's class and name. */
  protected named<T>(make: () => T): T {
    return placed(() => `${this.constructor.name} '${this.name}'`, make);
  }
}

/**
 * The config of host `index` of `hosts`, which together read the batches that `config` reads alone.
 *
 * @throws ConfigError where the rows cannot be shared evenly, or the config is that of one of several hosts already
 */
export function hostShare(config: Config<BaseInput>, index: number, hosts: number): Config<BaseInput> {
  const { name, numInfeedHosts } = config;
  if (numInfeedHosts > 1)
    throw new ConfigError(
      `Input '${name ?? 'train'}': numInfeedHosts is ${numInfeedHosts}, and ${hosts} ranks share its rows: leave it at 1.`,
      { path: 'numInfeedHosts' },
    );
  const divided = shareOfRows(config, hosts);
  return copyWith(divided, { numInfeedHosts: hosts, infeedHostIndex: index });
}

/** `withShareOfRows` of the config's class. */
export const shareOfRows = (config: Config<BaseInput>, hosts: number): Config<BaseInput> =>
  (classOf(config) as unknown as typeof BaseInput).withShareOfRows(config, hosts);
