/** @file EvalProgram: the metrics of one dataset at the present parameters (paxml's SingleTaskEvalProgram). */
import { setImmediate } from 'node:timers/promises';
import { type BoundCall, compile } from '../compiler/index.js';
import type { Config } from '../hparams/index.js';
import { type BaseInput, type Batch, EndOfData, type InputSource, specsOf } from '../inputs/index.js';
import {
  evalStep,
  metricValues,
  type SingleTask,
  type StepMetrics,
  WeightedMeans,
  type WeightedValues,
} from '../tasks/index.js';
import { BatchBuffers } from './batchBuffers.js';
import { JobError } from './errors.js';
import { type FlatParams, paramSpecs, paramViews } from './flatParams.js';
import { openDataset } from './openDataset.js';
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
  async run(batch: Batch): Promise<WeightedValues> {
    this.buffers.load(batch);
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
    return (await step).run(batch);
  }
}

/** What an evaluation found. */
export interface EvalResult {
  /** Weighted means over all batches. */
  readonly metrics: WeightedValues;
  readonly batches: number;
  readonly seconds: number;
}

/** Evaluates one dataset whenever it is asked to; its input is opened at the first time. */
export class EvalProgram {
  /** Where its summaries go: `eval_test_<dataset>`. */
  readonly name: string;
  #input: InputSource | undefined;

  constructor(
    private readonly options: JobOptions,
    private readonly steps: EvalSteps,
    private readonly dataset: Config<BaseInput>,
  ) {
    this.name = `eval_test_${dataset.name ?? 'input'}`;
  }

  /**
   * Evaluates `evalLoopNumBatches` batches, or all where that is -1. Rows of padding have weight 0, so the result is
   * the mean over examples, however they fall into batches.
   *
   * @param isStopped asked before each batch; true ends the evaluation without a result.
   */
  async run(isStopped: () => boolean): Promise<EvalResult | undefined> {
    const input = (this.#input ??= openDataset(this.options, this.dataset));
    const { evalLoopNumBatches: limit, resetForEval } = this.dataset;
    if (resetForEval || limit === -1) input.reset();
    const means = new WeightedMeans();
    const started = performance.now();
    let batches = 0;
    for (let batch = await nextBatch(input); batch; ) {
      if (isStopped()) return undefined;
      const isLast = ++batches === limit;
      // The next batch is made while this one is worked on.
      const working = this.steps.run(input.name, batch);
      const [metrics, next] = await Promise.all([working, isLast ? undefined : nextBatchLater(input)]);
      means.add(metrics);
      batch = next;
    }
    if (batches === 0) throw new JobError(`Input '${input.name}' has no batch to evaluate.`);
    return { metrics: means.result(), batches, seconds: (performance.now() - started) / 1000 };
  }

  async close(): Promise<void> {
    await this.#input?.close();
  }
}

/** The next batch, made once what has been begun is under way. */
async function nextBatchLater(input: InputSource): Promise<Batch | undefined> {
  await setImmediate();
  return nextBatch(input);
}

/** The next batch, or undefined at the end of the data. */
export async function nextBatch(input: InputSource): Promise<Batch | undefined> {
  try {
    return await input.getNext();
  } catch (error) {
    if (error instanceof EndOfData) return undefined;
    throw error;
  }
}
