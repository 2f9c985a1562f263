/** @file Batches of training, read into the memory of a step, with the input's state before and after each. */
import type { IndexError } from '../compiler/index.js';
import {
  type Batch,
  type BatchKind,
  EndOfData,
  type InputSource,
  type InputState,
  peekBatch,
} from '../inputs/index.js';
import { JobError } from '../runs/index.js';
import { badIndexError, type RowNames, reservedId, rowNamesOf } from './batchBuffers.js';
import type { KindStep } from './kindSteps.js';

/** Waits for a batch, or for what makes waiting vain. */
export type Reading = <T>(read: () => Promise<T>) => Promise<T>;

/** Feeds calls of a step. An error of the input, or of a batch, waits until the batches before it are trained. */
export class BatchFeed {
  #state: InputState;
  /** The input's states after each loaded batch. */
  #loaded: readonly InputState[] = [];
  /** Those before each batch of the last call. */
  #before: readonly InputState[] = [];
  #failure: unknown;
  #seconds = 0;

  constructor(
    private readonly input: InputSource,
    private readonly reading: Reading,
  ) {
    this.#state = input.getState();
  }

  /** The input's state after the last trained batch. */
  get state(): InputState {
    return this.#state;
  }

  /** Seconds of loading batches. */
  get seconds(): number {
    return this.#seconds;
  }

  /** Whether an error waits, so that there is no next batch. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** Kind of the next batch. */
  get kind(): BatchKind | null {
    return this.input.kindOf(this.input.getState());
  }

  /** The next batch, which stays the next one. @param step of the state. @throws JobError if the input has ended */
  async peek(step: number): Promise<Batch> {
    const batch = await this.reading(() => peekBatch(this.input));
    if (batch === undefined) throw this.#ended(step);
    return batch;
  }

  /**
   * Loads batches for the steps of a call.
   *
   * @param first the state's step.
   * @returns how many: up to `count`, of one kind, at least one.
   */
  async load(kindStep: KindStep, first: number, count: number): Promise<number> {
    const began = performance.now();
    this.#loaded = await this.#load(kindStep, first, count);
    this.#seconds += (performance.now() - began) / 1000;
    return this.#loaded.length;
  }

  async #load(kindStep: KindStep, first: number, count: number): Promise<InputState[]> {
    if (this.hasFailed) throw this.#failure;
    const { input } = this;
    const { kind, step, task } = kindStep;
    const loaded: InputState[] = [];
    for (let i = 0; i < count; i++) {
      if (i > 0 && this.kind?.name !== kind?.name) break;
      const before = loaded[i - 1] ?? this.#state;
      try {
        const batch = await this.reading(() => input.getNextPadded());
        step.buffers.load(batch, i);
        const problem = step.call.problemOf(i);
        if (problem !== undefined) throw await this.#badIndex(kindStep, problem, first + i + 1, before);
        const reserved = reservedId(task.model, batch);
        if (reserved !== undefined)
          throw reserved.error(this.#place(first + i + 1), await rowNamesOf(input, before));
      } catch (error) {
        this.#failure = error instanceof EndOfData ? this.#ended(first + i) : error;
        if (i === 0) throw this.#failure;
        break;
      }
      loaded.push(input.getState());
    }
    return loaded;
  }

  /**
   * Keeps the error of a batch whose index is out of range: the batches before it are trained.
   *
   * @param step number of the step that would have trained it. @returns the error in words of the batch
   */
  async refuse(kindStep: KindStep, error: IndexError, step: number): Promise<unknown> {
    const before = this.#loaded[error.run - 1] ?? this.#state;
    this.#failure = await this.#badIndex(kindStep, error, step, before);
    return this.#failure;
  }

  /** Marks the first `count` loaded batches as trained. */
  trained(count: number): void {
    this.#before = [this.#state, ...this.#loaded];
    this.#state = this.#loaded[count - 1]!;
  }

  /** Names of the data rows of a step of the last call, from 0; none where the input knows no names. */
  rowNames(step: number): Promise<RowNames> {
    return rowNamesOf(this.input, this.#before[step] ?? this.#state);
  }

  async #badIndex(
    { task, step: { buffers } }: KindStep,
    error: IndexError,
    step: number,
    before: InputState,
  ): Promise<JobError> {
    const names = await rowNamesOf(this.input, before);
    return badIndexError(this.#place(step), error, task.model, buffers.batchAt(error.run), names);
  }

  /** The batch of a step, for errors. */
  #place(step: number): string {
    return `Input '${this.input.name}', step ${step}`;
  }

  /** Error at the end of a training input that does not repeat. */
  #ended(step: number): JobError {
    return new JobError(
      `Input '${this.input.name}' has no more data at step ${step}, and training reads its data over and over. ` +
        'Set repeat=true of the input, let an input of your own start over, ' +
        `or end the training here: --set task.train.numTrainSteps=${step}.`,
    );
  }
}
