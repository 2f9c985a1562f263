/** @file EvalProgram: the metrics of one dataset at the present parameters (paxml's SingleTaskEvalProgram). */
import { setImmediate } from 'node:timers/promises';
import { type BoundCall, compile } from '../compiler/index.js';
import type { Config } from '../hparams/index.js';
import {
  type BaseInput,
  type Batch,
  EndOfData,
  InputError,
  type InputSource,
  type InputState,
  specsOf,
} from '../inputs/index.js';
import {
  evalStep,
  metricValues,
  type SingleTask,
  type StepMetrics,
  WeightedMeans,
  type WeightedValues,
} from '../tasks/index.js';
import { BatchBuffers, badIndexError } from './batchBuffers.js';
import { JobError } from './errors.js';
import { type FlatParams, paramSpecs, paramViews } from './flatParams.js';
import { checkDataset, openDataset } from './openDataset.js';
import { compileOptions, type JobOptions } from './options.js';

/** The evaluation step, compiled for batches of one shape. */
class EvalStep {
  private constructor(
    private readonly buffers: BatchBuffers,
    private readonly call: BoundCall,
  ) {}

  static async create(
    options: JobOptions,
    task: SingleTask,
    params: FlatParams,
    buffers: BatchBuffers,
  ): Promise<EvalStep> {
    const executable = await compile(
      evalStep(task),
      { params: paramSpecs(params), batch: buffers.specs },
      compileOptions(options, 'eval_step'),
    );
    const call = executable.bind({ inputs: { params: paramViews(params), batch: buffers.arrays } });
    return new EvalStep(buffers, call);
  }

  /** The metrics of a batch. */
  async run(inputName: string, batch: Batch): Promise<WeightedValues> {
    this.buffers.load(batch);
    const problem = this.call.problemOf(0);
    if (problem !== undefined) throw badIndexError(`Input '${inputName}'`, problem);
    const { metrics } = (await this.call.run()) as unknown as { metrics: StepMetrics };
    return metricValues(metrics);
  }
}

/** Compiled evaluation steps by the shapes of their batches: datasets with the same shapes share one. */
export class EvalSteps {
  readonly #steps = new Map<string, Promise<EvalStep>>();

  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly params: FlatParams,
  ) {}

  /** The metrics of a batch of the named input. */
  async run(inputName: string, batch: Batch): Promise<WeightedValues> {
    const signature = JSON.stringify(specsOf(batch));
    let step = this.#steps.get(signature);
    if (!step) {
      const buffers = new BatchBuffers(inputName, batch);
      step = EvalStep.create(this.options, this.task, this.params, buffers);
      this.#steps.set(signature, step);
    }
    return (await step).run(inputName, batch);
  }
}

/** What an evaluation found. */
export interface EvalResult {
  /** Weighted means over all batches. */
  readonly metrics: WeightedValues;
  readonly batches: number;
  readonly seconds: number;
  /** How the data differs from what the run read at first; told once. */
  readonly changes?: string | undefined;
}

/** Where an evaluation that goes on through its data began and ended. */
export interface RollingPosition {
  /** The step that it was at. */
  readonly step: number;
  /** null: at the first batch. */
  readonly from: InputState | null;
  readonly to: InputState;
}

/** Evaluates one dataset whenever it is asked to; its input is opened at the first time. */
export class EvalProgram {
  /** Where its summaries go: `eval_test_<dataset>`. */
  readonly name: string;
  #input: InputSource | undefined;
  #changes: string | undefined;
  #position: RollingPosition | undefined;

  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly steps: EvalSteps,
    private readonly dataset: Config<BaseInput>,
  ) {
    this.name = `eval_test_${dataset.name ?? 'input'}`;
  }

  /** Where the last evaluation was, if it goes on through its data; `goOnFrom` takes it. */
  get position(): RollingPosition | undefined {
    return this.#position;
  }

  /** Lets the next evaluation go on where one of an earlier process ended. */
  goOnFrom(position: RollingPosition): void {
    this.#position = position;
  }

  /**
   * Evaluates the batches that `evalLoopNumBatches` and `resetForEval` say. Rows of padding have weight 0, so the result
   * is the mean over examples, however they fall into batches.
   *
   * @param step of training; an evaluation that is done again at a step reads the same batches.
   * @param isStopped asked before each batch; true ends the evaluation without a result, as if it had not begun.
   */
  async run(step: number, isStopped: () => boolean): Promise<EvalResult | undefined> {
    const input = this.#input ?? this.#open();
    const limit = batchLimit(this.dataset, input);
    const isRolling = !this.dataset.resetForEval && limit !== -1;
    input.reset();
    const last = this.#position;
    const from = last?.step === step ? last.from : (last?.to ?? null);
    if (isRolling && from !== null) restorePosition(input, from);
    const take = () => (isRolling ? nextBatchAround(input) : nextBatch(input));
    const means = new WeightedMeans();
    const started = performance.now();
    let batches = 0;
    for (let batch = await take(); batch; ) {
      if (isStopped()) return undefined;
      const isLast = ++batches === limit;
      // The next batch is made while this one is worked on.
      const working = this.steps.run(input.name, batch);
      const taking = isLast ? undefined : setImmediate().then(take);
      // Where one fails, nothing goes on behind the back of whoever is told.
      await Promise.allSettled([working, taking]);
      means.add(await working);
      batch = await taking;
    }
    if (batches === 0) throw new JobError(`Input '${input.name}' has no batch to evaluate.`);
    if (isRolling) this.#position = { step, from, to: input.getState() };
    const changes = this.#changes;
    this.#changes = undefined;
    const seconds = (performance.now() - started) / 1000;
    return { metrics: means.result(), batches, seconds, ...(changes !== undefined && { changes }) };
  }

  /** Compares its tokenizer with the model and with training; opens the input where only its data can tell. */
  checkDataset(): void {
    if (!checkDataset(this.options, this.task, this.dataset)) this.#open();
  }

  async close(): Promise<void> {
    await this.#input?.close();
  }

  #open(): InputSource {
    const { task, dataset, name } = this;
    const { input, changes } = openDataset(this.options, { task, dataset, program: name });
    this.#changes = changes;
    this.#input = input;
    return input;
  }
}

/** How many batches one evaluation takes; -1: to the end of the data. @throws JobError where that has no end */
function batchLimit(dataset: Config<BaseInput>, input: InputSource): number {
  const { evalLoopNumBatches, resetForEval } = dataset;
  const limit = evalLoopNumBatches ?? (resetForEval && !input.isEndless ? -1 : 1);
  if (limit !== -1 || !input.isEndless) return limit;
  throw new JobError(
    `Input '${input.name}' has no end, so evalLoopNumBatches -1 would evaluate for ever. ` +
      'Set it to a number of batches, or let the data end (repeat, numBatches, isTraining).',
  );
}

/** The first batch is as good a place as any where the data is no longer what the position was in. */
function restorePosition(input: InputSource, position: InputState): void {
  try {
    input.setState(position);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    input.reset();
  }
}

/** The next batch of data that is read over and over; undefined where it has none at all. */
async function nextBatchAround(input: InputSource): Promise<Batch | undefined> {
  const next = await nextBatch(input);
  if (next !== undefined) return next;
  input.reset();
  return nextBatch(input);
}

/** The next batch, or undefined at the end of the data. */
export async function nextBatch(input: Pick<InputSource, 'getNext'>): Promise<Batch | undefined> {
  try {
    return await input.getNext();
  } catch (error) {
    if (error instanceof EndOfData) return undefined;
    throw error;
  }
}
