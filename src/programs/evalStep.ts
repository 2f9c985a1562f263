/** @file Evaluation steps: metrics and examples of a batch, added to an evaluation. */
import type { HostTensor } from '../compiler/index.js';
import type { Batch } from '../inputs/index.js';
import { JobError, type JobOptions } from '../runs/index.js';
import {
  type EvalOutputs,
  type Evaluation,
  type ExampleTensors,
  evalKey,
  evalStep,
  metricValues,
  type SingleTask,
  type StepMetrics,
} from '../tasks/index.js';
import { nonFiniteMetrics } from './finiteCheck.js';
import { ForwardCalls } from './forwardCalls.js';
import type { Stopwatch } from './stopwatch.js';
import type { FlatParams } from './taskState.js';

/** Summaries of layers that are no scalars, by name. */
type Media = Readonly<Record<string, HostTensor>>;

/** Evaluation steps by batch shapes. */
export class EvalSteps {
  readonly #calls: ForwardCalls;

  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    params: FlatParams,
    /** Batches that are expected in all. */
    runs?: number,
    /** Whether the parameters are the average of them. */
    isAverage = false,
  ) {
    const forward = params.split?.forward;
    this.#calls = new ForwardCalls({
      ...{ options, task, params, name: 'eval_step', step: evalStep(task), runs },
      ...(forward && { inParts: (asked, batch) => forward.run({ ...asked, isAverage }, batch) }),
    });
  }

  /** Must be called after the parameters have changed. */
  refresh(): void {
    this.#calls.refresh();
  }

  /**
   * Adds a batch of the named input to an evaluation.
   *
   * @param watch paused for compilation.
   * @returns summaries of layers that are no scalars, by name, which the next batch overwrites.
   * @throws as a forward call, and JobError where --debug=nan finds a metric that is not finite.
   */
  async run(inputName: string, batch: Batch, evaluation: Evaluation, watch?: Stopwatch): Promise<Media> {
    watch?.pause();
    const call = await this.#calls.of(inputName, batch);
    watch?.start();
    const { randomSeed } = this.task.hp.evaluate.hp;
    const outputs = await call.run(inputName, batch, evalKey(evaluation.batches, randomSeed));
    const { metrics, examples, media } = outputs as unknown as {
      metrics: StepMetrics;
      examples: ExampleTensors;
      media: Media;
    };
    const values: EvalOutputs = { metrics: metricValues(metrics), examples };
    const wrong = this.options.debug === 'nan' ? nonFiniteMetrics(values.metrics) : [];
    if (wrong.length > 0)
      throw new JobError(
        `--debug=nan: the evaluation of a batch of input '${inputName}' is not finite: ${wrong.join(', ')}. ` +
          (await call.firstNonFinite()),
      );
    evaluation.add(values, batch);
    return media;
  }
}
