/** @file Outputs of a model for the examples of an evaluation, joined by the examples' numbers, and metrics of them by task. */
import { InputError, placed } from '../../inputErrors.js';
import type { ExampleMetrics } from '../../inputSource.js';
import type { NumberedExample } from '../numberedExamples.js';
import type { Example } from '../preprocessor.js';
import type { Task } from '../seqioTask.js';
import type { BasePredictMetric, BaseScoreMetric, TaskMetric } from './taskMetric.js';

/** Measurement of a task, by predictions or scores. */
export interface Measured<Output> {
  /** Noun of an output, for messages. */
  readonly noun: string;
  metricsOf(task: Task): Readonly<Record<string, BasePredictMetric | BaseScoreMetric | TaskMetric<never>>>;
  /** The value of an output that metrics get. */
  valueOf(output: Output, task: Task, example: Example): unknown;
}

/** Ids that a model has decoded. */
export const PREDICTIONS: Measured<ArrayLike<number>> = {
  noun: 'prediction',
  metricsOf: ({ hp }) => hp.predictMetrics,
  valueOf: (ids, task, example) => task.predictionOf(ids, example),
};

/** Log-likelihoods under a model. */
export const SCORES: Measured<number> = {
  noun: 'score',
  metricsOf: ({ hp }) => hp.scoreMetrics,
  valueOf: (score) => score,
};

/** Targets and outputs of a task, in the order of the examples. */
interface TaskValues {
  readonly task: Task;
  readonly targets: unknown[];
  readonly outputs: unknown[];
}

/** The outputs of one evaluation. Those of several hosts, or of hosts that repeat one another's examples, join in any order. */
export class TaskEvaluation<Output> implements ExampleMetrics<Output> {
  readonly #outputs = new Map<number, Output>();

  /**
   * @param examples those of all hosts, read again.
   * @param isLoneTask whether they are of one task, outside a mixture: then names of metrics begin with no name of a task.
   */
  constructor(
    private readonly inputName: string,
    private readonly measured: Measured<Output>,
    private readonly examples: () => Iterable<NumberedExample>,
    private readonly isLoneTask: boolean,
  ) {}

  add(ids: ArrayLike<number>, outputs: ArrayLike<Output>): void {
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!;
      if (id >= 0 && !this.#outputs.has(id)) this.#outputs.set(id, outputs[i]!);
    }
  }

  get outputs(): readonly (readonly [number, Output])[] {
    return [...this.#outputs];
  }

  result(): ReturnType<ExampleMetrics<Output>['result']> {
    const byTask = new Map<string, TaskValues>();
    const compared = new Map<number, { readonly target: unknown; readonly output: unknown }>();
    for (const { id, from, example, place } of this.examples()) {
      const { name, task } = from;
      if (Object.keys(this.measured.metricsOf(task)).length === 0) continue;
      if (!this.#outputs.has(id)) throw this.#missing(id, name, place());
      const output = placed(place, () => this.measured.valueOf(this.#outputs.get(id)!, task, example));
      const target = placed(place, () => task.targetOf(example));
      const values = byTask.get(name) ?? { task, targets: [], outputs: [] };
      byTask.set(name, values);
      values.targets.push(target);
      values.outputs.push(output);
      compared.set(id, { target, output });
    }
    return {
      metrics: Object.fromEntries([...byTask].flatMap((entry) => this.#metricsOf(...entry))),
      compared,
    };
  }

  #metricsOf(taskName: string, { task, targets, outputs }: TaskValues) {
    return Object.entries(this.measured.metricsOf(task)).map(([key, metric]) => {
      const name = this.isLoneTask ? key : `${taskName}/${key}`;
      const compute: TaskMetric<never> =
        typeof metric === 'function' ? metric : (...values) => metric.compute(...values);
      const value = compute(targets, outputs as never[]);
      if (typeof value === 'number') return [name, { value, weight: targets.length }] as const;
      throw new InputError(
        `Input '${this.inputName}': the metric '${name}' is ${JSON.stringify(value)}, and metrics are numbers.`,
      );
    });
  }

  #missing(id: number, taskName: string, place: string): InputError {
    const { noun } = this.measured;
    const of = this.isLoneTask ? '' : ` of task '${taskName}'`;
    return new InputError(
      `Input '${this.inputName}': example ${id}${of} (${place}) has no ${noun}. Metrics of tasks are of all examples, on ` +
        'all hosts: leave evalLoopNumBatches and resetForEval unset. evalNumExamples limits the examples.',
    );
  }
}
