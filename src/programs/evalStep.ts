/** @file Evaluation steps, one for each shape of batches: compiled, or op by op under --debug=eager. */
import {
  type BoundCall,
  compile,
  type Executable,
  firstNonFinite,
  type HostTensor,
  layoutSpecs,
  type PrngKey,
  runEagerly,
  type TensorSpec,
} from '../compiler/index.js';
import { type Batch, specsOf } from '../inputs/index.js';
import { compileOptions, JobError, type JobOptions, slowUnit, timed } from '../runs/index.js';
import {
  type EvalOutputs,
  type Evaluation,
  type ExampleTensors,
  evalKey,
  evalStep,
  metricValues,
  type SingleTask,
  type StepMetrics,
  type WeightedValues,
} from '../tasks/index.js';
import { BatchBuffers, badIndexError, reservedId } from './batchBuffers.js';
import { nonFiniteMetrics } from './finiteCheck.js';
import { describeNonFinite } from './invalidSteps.js';
import type { Stopwatch } from './stopwatch.js';
import { type FlatParams, hostParams } from './taskState.js';

/** Outputs for a batch. */
interface StepResult extends EvalOutputs {
  /** Summaries of layers that are no scalars, by name. */
  readonly media: Readonly<Record<string, HostTensor>>;
}

export class EvalStep {
  private constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly params: FlatParams,
    private readonly buffers: BatchBuffers,
    /** Two words, that of the batch. */
    private readonly key: Int32Array,
    private readonly call: Pick<BoundCall, 'problemOf' | 'run'>,
    private readonly executable?: Executable,
  ) {}

  /** @param runs batches that are expected in all. */
  static async create(
    options: JobOptions,
    task: SingleTask,
    params: FlatParams,
    buffers: BatchBuffers,
    runs?: number,
  ): Promise<EvalStep> {
    const step = evalStep(task);
    const key = new Int32Array(2);
    const prngKey = { shape: [2], dtype: 'int32', data: key } satisfies HostTensor;
    if (options.debug === 'eager') {
      const run = () => runEagerly(step, { params: hostParams(params), batch: buffers.batchAt(0), prngKey });
      return new EvalStep(options, task, params, buffers, key, { problemOf: () => undefined, run });
    }
    const specs = {
      ...{ params: layoutSpecs(params.layout), batch: buffers.specs },
      prngKey: { shape: [2], dtype: 'int32' } satisfies TensorSpec,
    };
    const executable = await timed(options, 'compile', () =>
      slowUnit(options, 'compilation of eval_step', () =>
        compile(step, specs, { ...compileOptions(options, 'eval_step', runs), frozen: ['params'] }),
      ),
    );
    const call = executable.bind({
      inputs: { params: params.views, batch: buffers.arrays, prngKey: key },
    });
    return new EvalStep(options, task, params, buffers, key, call, executable);
  }

  /** Must be called after the parameters have changed. */
  refresh(): void {
    this.executable?.refresh();
  }

  /**
   * The outputs for a batch, which the next call overwrites.
   *
   * @param key of the numbers that the model draws.
   * @throws JobError for an index out of range, and where --debug=nan finds a metric that is not finite.
   */
  async run(inputName: string, batch: Batch, key: PrngKey): Promise<StepResult> {
    this.buffers.load(batch);
    this.key.set(key);
    const [what, { model }, problem] = [`Input '${inputName}'`, this.task, this.call.problemOf(0)];
    if (problem !== undefined) throw badIndexError(what, problem, model, this.buffers.batchAt(0));
    const reserved = reservedId(model, batch);
    if (reserved !== undefined) throw reserved.error(what);
    const { metrics, examples, media } = (await this.call.run()) as unknown as {
      metrics: StepMetrics;
      examples: ExampleTensors;
      media: StepResult['media'];
    };
    this.options.progress?.finished();
    const values = metricValues(metrics);
    if (this.options.debug === 'nan') await this.#check(inputName, values);
    return { metrics: values, examples, media };
  }

  async #check(inputName: string, values: WeightedValues): Promise<void> {
    const wrong = nonFiniteMetrics(values);
    if (wrong.length === 0) return;
    const prngKey: HostTensor = { shape: [2], dtype: 'int32', data: this.key };
    const inputs = { params: hostParams(this.params), batch: this.buffers.batchAt(0), prngKey };
    const found = describeNonFinite(await firstNonFinite(evalStep(this.task), inputs));
    throw new JobError(
      `--debug=nan: the evaluation of a batch of input '${inputName}' is not finite: ${wrong.join(', ')}. ${found}`,
    );
  }
}

/** Evaluation steps by batch shapes; datasets with equal shapes share one. */
export class EvalSteps {
  readonly #steps = new Map<string, Promise<EvalStep>>();

  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly params: FlatParams,
    /** Batches that are expected in all. */
    private readonly runs?: number,
  ) {}

  /** Must be called after the parameters have changed. */
  refresh(): void {
    // A step that is still being compiled has no results of earlier ones; its failure is told to the batch that waits.
    for (const step of this.#steps.values())
      step.then(
        (compiled) => compiled.refresh(),
        () => {},
      );
  }

  /**
   * Adds a batch of the named input to an evaluation.
   *
   * @param watch paused for compilation.
   * @returns summaries of layers that are no scalars, by name, which the next batch overwrites.
   */
  async run(
    inputName: string,
    batch: Batch,
    evaluation: Evaluation,
    watch?: Stopwatch,
  ): Promise<StepResult['media']> {
    watch?.pause();
    const step = await this.#stepOf(inputName, batch);
    watch?.start();
    const { randomSeed } = this.task.hp.evaluate.hp;
    const result = await step.run(inputName, batch, evalKey(evaluation.batches, randomSeed));
    evaluation.add(result, batch);
    return result.media;
  }

  #stepOf(inputName: string, batch: Batch): Promise<EvalStep> {
    const signature = JSON.stringify(specsOf(batch));
    let step = this.#steps.get(signature);
    if (!step) {
      const buffers = new BatchBuffers(inputName, batch);
      step = EvalStep.create(this.options, this.task, this.params, buffers, this.runs);
      this.#steps.set(signature, step);
      // A failed compilation is retried with the next batch.
      step.catch(() => this.#steps.delete(signature));
    }
    return step;
  }
}
