/** @file The evaluation step for batches of one shape: compiled, or op by op under --debug=eager. */
import { type BoundCall, compile, firstNonFinite, flatViews, runEagerly } from '../compiler/index.js';
import type { Batch } from '../inputs/index.js';
import {
  type EvalOutputs,
  type ExampleTensors,
  evalStep,
  metricValues,
  type SingleTask,
  type StepMetrics,
  type WeightedValues,
} from '../tasks/index.js';
import { type BatchBuffers, badIndexError } from './batchBuffers.js';
import { nonFiniteMetrics } from './finiteCheck.js';
import { describeNonFinite } from './invalidSteps.js';
import { JobError } from './jobErrors.js';
import { compileOptions, type JobOptions } from './options.js';
import { type FlatParams, hostParams, paramSpecs } from './taskState.js';

export class EvalStep {
  private constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly params: FlatParams,
    private readonly buffers: BatchBuffers,
    private readonly call: Pick<BoundCall, 'problemOf' | 'run'>,
  ) {}

  static async create(
    options: JobOptions,
    task: SingleTask,
    params: FlatParams,
    buffers: BatchBuffers,
  ): Promise<EvalStep> {
    const step = evalStep(task);
    if (options.debug === 'eager') {
      const run = () => runEagerly(step, { params: hostParams(params), batch: buffers.batchAt(0) });
      return new EvalStep(options, task, params, buffers, { problemOf: () => undefined, run });
    }
    const executable = await compile(
      step,
      { params: paramSpecs(params), batch: buffers.specs },
      compileOptions(options, 'eval_step'),
    );
    const call = executable.bind({
      inputs: { params: flatViews(params.layout, params.params), batch: buffers.arrays },
    });
    return new EvalStep(options, task, params, buffers, call);
  }

  /**
   * The outputs for a batch, which the next call overwrites.
   *
   * @throws JobError for an index out of range, and where --debug=nan finds a metric that is not finite.
   */
  async run(inputName: string, batch: Batch): Promise<EvalOutputs> {
    this.buffers.load(batch);
    const problem = this.call.problemOf(0);
    if (problem !== undefined) throw badIndexError(`Input '${inputName}'`, problem);
    const { metrics, examples } = (await this.call.run()) as unknown as {
      metrics: StepMetrics;
      examples: ExampleTensors;
    };
    const values = metricValues(metrics);
    if (this.options.debug === 'nan') await this.#check(inputName, values);
    return { metrics: values, examples };
  }

  async #check(inputName: string, values: WeightedValues): Promise<void> {
    const wrong = nonFiniteMetrics(values);
    if (wrong.length === 0) return;
    const inputs = { params: hostParams(this.params), batch: this.buffers.batchAt(0) };
    const found = describeNonFinite(await firstNonFinite(evalStep(this.task), inputs));
    throw new JobError(
      `--debug=nan: the evaluation of a batch of input '${inputName}' is not finite: ${wrong.join(', ')}. ${found}`,
    );
  }
}
