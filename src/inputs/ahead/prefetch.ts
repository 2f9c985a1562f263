/** @file Prefetching: an input read ahead in worker threads, of which each makes every n-th batch. */

import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { build, type Config, type JsonDocument, toJSON } from '../../hparams/index.js';
import { warn } from '../../system/index.js';
import type { BaseInput } from '../baseInput.js';
import type { Batch, BatchUnit } from '../batch.js';
import { BatchTiming } from '../batchTiming.js';
import { type DataIdentity, recordedIdentity, withRecorded } from '../dataIdentity.js';
import { EndOfData, InputError } from '../inputErrors.js';
import {
  type BatchKind,
  type ExampleMetrics,
  type IdRows,
  type IdVocabulary,
  type InputSource,
  type InputState,
  untilEnd,
} from '../inputSource.js';
import type { PartStates } from '../recordedParts.js';
import { NONE_SKIPPED, type SkippedExamples } from '../skippedExamples.js';
import type { Item } from './prefetchProtocol.js';
import { PrefetchThread } from './prefetchThread.js';
import { loadingProblem } from './threadLoading.js';

/** Options of `openInput`. */
export interface OpenInputOptions {
  /**
   * File URLs of modules that the worker loads first where the input has classes of a program. Those that declare these
   * classes it finds itself.
   */
  readonly modules?: readonly string[];
  /** Receives the reasons for slow reading. Default: a line on stderr. */
  readonly tell?: (line: string) => void;
}

/**
 * Builds an input, read ahead in a worker thread where `prefetchBatches` asks for it.
 *
 * Batches, states and errors are those of the input itself; missing files are detected here, before anything is read.
 * The main thread makes the first batches while the worker starts, so that programs need not wait. It makes them all where
 * no thread can load the input's classes, which is found, and told, before the first batch.
 *
 * @throws InputError for invalid data
 */
export function openInput(config: Config<BaseInput>, options: OpenInputOptions = {}): InputSource {
  const input = build(config);
  input.getState();
  if (input.prefetch === 'never') return input;
  // The thread reads the files again; its tokenizer must not learn another vocabulary from changed ones.
  const document = toJSON(withRecorded(config, recordedIdentity(input)));
  return new PrefetchedInput(input, document, options);
}

class PrefetchedInput implements InputSource {
  readonly #input: BaseInput;
  readonly #document: JsonDocument;
  readonly #modules: readonly string[];
  /** Threads that make batches, or are getting ready to; once all are ready, `#readers` of them read. */
  readonly #threads: PrefetchThread[] = [];
  /** Number of threads between which batches are dealt out; 0 while the main thread makes them. */
  #readers = 0;
  /** Number of times that the threads have started reading. */
  #generation = 0;
  /** Number of batches received in this generation. */
  #received = 0;
  #state: InputState;
  #peeked: Item | null = null;
  #ended = false;
  #timing = new BatchTiming();
  #failure: InputError | null = null;
  #closed = false;
  #tell: (line: string) => void;
  /** Why no thread can read, where it lacks classes; the library's it has. */
  readonly #loading: Promise<string | undefined> | undefined;
  #isAlone = false;

  constructor(input: BaseInput, document: JsonDocument, { modules = [], tell = warn }: OpenInputOptions) {
    this.#input = input;
    this.#document = document;
    this.#modules = modules;
    this.#tell = tell;
    this.#state = input.getState();
    if (document.modules !== undefined) this.#loading = loadingProblem(input.name, { document, modules });
  }

  get name(): string {
    return this.#input.name;
  }

  get batchSize(): number {
    return this.#input.batchSize;
  }

  get batchUnit(): BatchUnit {
    return this.#input.batchUnit;
  }

  get isEndless(): boolean {
    return this.#input.isEndless;
  }

  dataIdentity(): DataIdentity {
    return this.#input.dataIdentity();
  }

  recordedParts(): PartStates {
    return this.#input.recordedParts();
  }

  vocabularyFor(path: string): IdVocabulary | null {
    return this.#input.vocabularyFor(path);
  }

  classNamesFor(path: string): readonly string[] | null {
    return this.#input.classNamesFor(path);
  }

  get skipped(): SkippedExamples {
    return this.#input.skipped;
  }

  /** Number of threads that make the batches; at first none, for the main thread does. */
  get readers(): number {
    return this.#readers;
  }

  getGlobalBatchSize(): number {
    return this.#input.getGlobalBatchSize();
  }

  idsToStrings(ids: IdRows, lengths?: ArrayLike<number>): string[] {
    return this.#input.idsToStrings(ids, lengths);
  }

  predictMetrics(): ExampleMetrics<ArrayLike<number>> | null {
    return this.#input.predictMetrics();
  }

  scoreMetrics(): ExampleMetrics<number> | null {
    return this.#input.scoreMetrics();
  }

  /** By the input of this thread, whatever the others have read. */
  rowNames(state: InputState): Promise<readonly string[] | null> {
    return this.#input.rowNames(state);
  }

  kindOf(state: InputState): BatchKind | null {
    return this.#input.kindOf(state);
  }

  kindSpecs(): ReturnType<InputSource['kindSpecs']> {
    return this.#input.kindSpecs();
  }

  async getNext(): Promise<Batch> {
    const item = this.#peeked ?? (await this.#read());
    this.#peeked = null;
    this.#state = this.#input.joinStates([this.#state, item.state]);
    this.skipped.add(item.skipped);
    if (item.batch) return item.batch;
    this.#ended = true;
    throw new EndOfData(this.name);
  }

  async peek(): Promise<Batch> {
    this.#peeked ??= await this.#read();
    if (this.#peeked.batch) return this.#peeked.batch;
    throw new EndOfData(this.name);
  }

  async getNextPadded(): Promise<Batch> {
    return this.#input.padded(await this.getNext());
  }

  async peekPadded(): Promise<Batch> {
    return this.#input.padded(await this.peek());
  }

  getState(): InputState {
    return this.#state;
  }

  reset(): void {
    this.#input.reset();
    this.#restart(this.#input.getState());
  }

  setState(state: InputState): void {
    this.#input.setState(state);
    this.#restart(state);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#threads.map((thread) => thread.close()));
    await this.#input.close();
  }

  #restart(state: InputState): void {
    this.#state = state;
    this.#peeked = null;
    this.#ended = false;
    if (this.#readers > 0) this.#deal(state);
  }

  async #read(): Promise<Item> {
    if (this.#failure) throw this.#failure;
    if (this.#closed) throw this.#isClosed();
    if (this.#ended) return { batch: null, state: this.#state, skipped: NONE_SKIPPED };
    await this.#chooseThread();
    this.#timing.begin();
    const item = await (this.#readers > 0 ? this.#receive() : this.#make());
    this.#timing.end();
    if (item.batch !== null) this.#recruit(item.state);
    return item;
  }

  /** Has this thread read alone where no other can load the input's classes. */
  async #chooseThread(): Promise<void> {
    const problem = this.#isAlone ? undefined : await this.#loading;
    if (problem === undefined) return;
    this.#isAlone = true;
    this.#tell(
      `Input '${this.name}' is read in the main thread, which may take longer: a prefetch thread cannot load its classes. ${problem}`,
    );
  }

  /** Makes a batch in this thread. */
  async #make(): Promise<Item> {
    const batch = await untilEnd(() => this.#input.getNext());
    // The input has counted them.
    return { batch: batch ?? null, state: this.#input.getState(), skipped: NONE_SKIPPED };
  }

  async #receive(): Promise<Item> {
    const thread = this.#threads[this.#received % this.#readers]!;
    const item = await thread.take(this.#generation).catch((error) => this.#fail(error));
    if (item === undefined) throw this.#isClosed();
    this.#received++;
    return item;
  }

  /** Starts threads where they pay, and lets all read once all are ready. @param state after the last batch */
  #recruit(state: InputState): void {
    for (let wanted = this.#wanted; this.#threads.length < wanted; ) this.#threads.push(this.#start());
    if (this.#areReady && this.#threads.length > this.#readers)
      this.#deal(this.#input.joinStates([this.#state, state]));
  }

  get #areReady(): boolean {
    try {
      return this.#threads.every((thread) => thread.isReady);
    } catch (error) {
      return this.#fail(error as Error);
    }
  }

  /**
   * Number of threads that pay: none before the second batch, so that the program's first step has the machine to
   * itself; where nothing is said, more only while the program still waits for batches.
   */
  get #wanted(): number {
    const { prefetch, hp } = this.#input;
    if (this.#isAlone) return 0;
    const now = this.#readers;
    const isSlow =
      this.#timing.isSlow || (now === 0 && prefetch !== 'where it is slow' && this.#timing.made >= 2);
    // Those that were started last are not ready yet.
    if (!isSlow || this.#threads.length > now) return now;
    const most = hp.numWorkers ?? availableParallelism();
    return this.#input.numReaders(now === 0 ? (hp.numWorkers ?? 1) : Math.min(2 * now, most));
  }

  #start(): PrefetchThread {
    return new PrefetchThread(this.name, { document: this.#document, modules: this.#modules });
  }

  /** Lets all threads read, from a state on. */
  #deal(state: InputState): void {
    this.#readers = this.#threads.length;
    this.#generation++;
    this.#received = 0;
    this.#timing = new BatchTiming();
    for (const [first, thread] of this.#threads.entries())
      thread.start({ generation: this.#generation, state, first, stride: this.#readers });
  }

  #isClosed(): InputError {
    return new InputError(`Input '${this.name}' is closed.`);
  }

  #fail(error: Error): never {
    this.#failure = this.#failed(error);
    throw this.#failure;
  }

  #failed(error: Error): InputError {
    // The thread rereads the files, which may have been deleted.
    const gone = (this.dataIdentity().files ?? []).filter(({ path }) => !existsSync(path));
    const reason =
      gone.length === 0
        ? error.message
        : `${gone.map(({ path }) => path).join(', ')} was deleted after the start. Restore it.`;
    return new InputError(`Input '${this.name}' failed in its prefetch thread: ${reason}`, { cause: error });
  }
}
