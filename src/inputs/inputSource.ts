/** @file The contract between inputs and the programs that read them. */

import type { Batch, BatchSpecs, BatchUnit } from './batch.js';
import type { DataIdentity } from './dataIdentity.js';
import { EndOfData } from './inputErrors.js';
import type { JsonValue } from './jsonValue.js';
import type { PartStates } from './recordedParts.js';
import type { SkippedExamples } from './skippedExamples.js';

/** Position of an input, as JSON; checkpoints keep it in train_input.json. */
export interface InputState {
  readonly [key: string]: JsonValue;
}

/** A kind of batches. Those of one kind have the same arrays. */
export interface BatchKind {
  /** Of the kind, the same for all of its batches. */
  readonly name: string;
  /** Name of the input that the batch comes from, of several that are interleaved. */
  readonly part?: string;
  /** Batches that each of those has given before. */
  readonly counts?: Readonly<Record<string, number>>;
}

/**
 * A source of batches: an input, or one that reads ahead. One call of `getNext` or `peek` at a time.
 */
export interface InputSource {
  /** Name of the data, for messages, summaries and directories. */
  readonly name: string;
  /** Rows of each batch of this host. */
  readonly batchSize: number;
  /** Rows of each batch of all hosts together. */
  getGlobalBatchSize(): number;
  /** The unit of throughput in `…_per_sec`. */
  readonly batchUnit: BatchUnit;
  /** Whether batches depend on the parameters in training, so that none may be taken before the step before it. */
  readonly followsTraining?: boolean;
  /** Whether there is always a next batch. */
  readonly isEndless: boolean;
  /** Identity of the data, reading it if necessary. @throws InputError for unusable data */
  dataIdentity(): DataIdentity;
  /** The states of its parts that read files or learn from the data; those that learn have them after `dataIdentity`. */
  recordedParts(): PartStates;
  /** The meaning of the ids at a path of the batches; null where they have none. */
  vocabularyFor(path: string): IdVocabulary | null;
  /** Names, by id, of the classes for the ids at a path of the batches; null if they have none. */
  classNamesFor(path: string): readonly string[] | null;
  /** Examples left out under `onError` 'skip', of batches taken. */
  readonly skipped: SkippedExamples;
  /** Takes the next batch, which the caller owns. @throws EndOfData after the last one, until `reset` */
  getNext(): Promise<Batch>;
  /** The next batch, without taking it. @throws EndOfData as `getNext` */
  peek(): Promise<Batch>;
  /** Like `getNext`, with `batchPaddingSize` rows of padding behind the batch: the batches of programs. */
  getNextPadded(): Promise<Batch>;
  /** As `peek`, padded as `getNextPadded` pads. */
  peekPadded(): Promise<Batch>;
  /** Returns to the first batch. */
  reset(): void;
  /** The state after the last batch taken, for `setState` to resume with the following one. */
  getState(): InputState;
  /** The kind of the batch that follows a state; null where all batches are of one kind. */
  kindOf(state: InputState): BatchKind | null;
  /** Shapes of the batches of each kind by its name, without padding rows, from the config alone; null where all are of one kind. */
  kindSpecs(): Readonly<Record<string, { readonly part?: string; readonly specs: BatchSpecs }>> | null;
  /** Resumes from a state. @throws InputError for a state of other data */
  setState(state: InputState): void;
  /**
   * Names of the rows of the batch that follows a state, as messages name records: `a.jsonl:12`. Found anew by each call,
   * while the input stays where it is.
   *
   * @param state one that this input gave.
   * @returns null where rows have no names.
   */
  rowNames(state: InputState): Promise<readonly string[] | null>;
  /** Text of each row of ids, shape [rows, length]; `lengths` truncates rows. */
  idsToStrings(ids: IdRows, lengths?: ArrayLike<number>): string[];
  /** Metrics of a model's decoded outputs for each example; null if the data has none. */
  predictMetrics(): ExampleMetrics<ArrayLike<number>> | null;
  /** Metrics of each example's log-likelihood under a model; null where the data has none. */
  scoreMetrics(): ExampleMetrics<number> | null;
  /** Ends background work; no more batches follow. */
  close(): Promise<void>;
}

/** How examples of a user's own are read. */
export interface ExampleOptions {
  /** Number of the first one in messages. */
  readonly first: number;
  /** Whether a text may be the path of a file. */
  readonly readsFiles: boolean;
}

/** Metrics of a model's outputs for all examples of an evaluation, of nothing at first. */
export interface ExampleMetrics<Output> {
  /**
   * Adds outputs. An example counts once, however often it is added.
   *
   * @param ids numbers of the examples, a batch's `exampleIds`; -1 for padding.
   */
  add(ids: ArrayLike<number>, outputs: ArrayLike<Output>): void;
  /** The added outputs, for `add` in another process. */
  readonly outputs: readonly (readonly [id: number, output: Output])[];
  /**
   * The metrics by name, with their number of examples, and the compared values, by the numbers of the examples.
   *
   * @throws InputError for an example without an output.
   */
  result(): {
    readonly metrics: Readonly<Record<string, { readonly value: number; readonly weight: number }>>;
    readonly compared: ReadonlyMap<number, { readonly target: unknown; readonly output: unknown }>;
  };
}

/** The meaning of ids: those of a tokenizer, or of a feature that has more. */
export interface IdVocabulary {
  /** Exclusive limit of ids. */
  readonly vocabSize: number;
  /** Id of unknown text; null without one. */
  readonly unkId: number | null;
  /** Text of ids. @throws InputError for one outside of the vocabulary */
  decode(ids: ArrayLike<number>): string;
  /** Whether an id is one of the vocabulary's. */
  hasText(id: number): boolean;
  /** Bytes of UTF-8 that an id adds to a text; undefined for one that adds none, or whose are not known. */
  tokenBytes(id: number): Uint8Array | undefined;
  /** Of the targets of sources: the ids before their first token, with which a decode begins. */
  readonly targetStart?: readonly number[];
}

/** Traits of rows of token ids, from an input's config; a model's settings have to agree. */
export interface RowTraits {
  /** The field of the config by which a row holds several documents; absent where it holds one. */
  readonly packedBy?: string;
  /** Whether labels are the tokens behind the ids, which must not see them, or tokens that the ids hide. */
  readonly labels?: 'next tokens' | 'masked tokens';
  /** Whether rows may end in padding. */
  readonly isPadded?: boolean;
}

/** Token ids, [rows, length], row-major. */
export interface IdRows {
  readonly shape: readonly number[];
  readonly data: ArrayLike<number>;
}

/** The next batch as programs read it, or undefined at the end of the data. */
export function nextBatch(input: Pick<InputSource, 'getNextPadded'>): Promise<Batch | undefined> {
  return untilEnd(() => input.getNextPadded());
}

/** The batch that `nextBatch` would take. */
export function peekBatch(input: Pick<InputSource, 'peekPadded'>): Promise<Batch | undefined> {
  return untilEnd(() => input.peekPadded());
}

/** The result of `read`, or undefined at the end of the data. */
export async function untilEnd(read: () => Promise<Batch>): Promise<Batch | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof EndOfData) return undefined;
    throw error;
  }
}
