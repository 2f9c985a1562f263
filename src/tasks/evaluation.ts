/** @file Metrics of a whole evaluation: means of the batches' metrics, and those that are no means. */
import type { HostTensor } from '../compiler/index.js';
import { ConfigError, Configurable } from '../hparams/index.js';
import {
  type Batch,
  EXAMPLE_IDS,
  type ExampleMetrics,
  exampleRows,
  nestedRow,
  type RowValues,
} from '../inputs/index.js';
import { EXAMPLE_ID } from './inference.js';
import {
  type MetricImages,
  type MetricTable,
  WeightedMeans,
  type WeightedValue,
  type WeightedValues,
} from './metrics.js';

/** Host tensors by name, each with the batch in front. */
export type ExampleTensors = Readonly<Record<string, HostTensor>>;

/** Count of one evaluation so far for a metric. */
export interface Accumulation {
  /** Adds a batch. The tensors are those that the metric reads; they are overwritten afterwards. */
  add(tensors: ExampleTensors): void;
  /** The metric of all batches. @param means of the model's metrics over all batches */
  result(means: WeightedValues): MetricValue;
}

/** A number with its weight, numbers in a table, or pictures. */
export type MetricValue = WeightedValue | MetricTable | MetricImages;

/** Names, by id, of the classes whose ids stand at a path of the batches; null where they have none. */
export type ClassNames = (path: string) => readonly string[] | null;

/** Values for an example by name, and its number in the data. */
export type EvaluatedExample = Readonly<Record<string, RowValues>> & { readonly [EXAMPLE_ID]: number };

/** All metrics of an evaluation by name. */
export interface EvaluationResult {
  readonly metrics: WeightedValues;
  readonly tables: Readonly<Record<string, MetricTable>>;
  readonly images: Readonly<Record<string, MetricImages>>;
  /** Values of the outputs of examples that were asked for, in the order of the data. */
  readonly examples: readonly EvaluatedExample[];
}

/** Base of the metrics that are computed of a whole evaluation, and not as a mean over batches. */
export abstract class BaseEvalMetric extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** Names of the tensors that it reads: of the model's per-example output, or of the batch. */
  abstract tensorNames(): readonly string[];

  /** A new accumulation, of nothing. @param classNames of the data */
  abstract accumulate(classNames: ClassNames): Accumulation;
}

/** Outputs of an evaluation step, on the host. */
export interface EvalOutputs {
  readonly metrics: WeightedValues;
  /** Those of the model's per-example tensors that are read. */
  readonly examples: ExampleTensors;
}

/** The metrics of one evaluation, batch after batch. */
export class Evaluation {
  readonly #means = new WeightedMeans();
  #batches = 0;
  readonly #examples: EvaluatedExample[] = [];
  readonly #own: ReadonlyMap<string, { names: readonly string[]; accumulation: Accumulation }>;

  /** @param scores metrics of examples' log-likelihoods, which the data has */
  constructor(
    evalMetrics: Readonly<Record<string, BaseEvalMetric>>,
    private readonly scores: ExampleMetrics<number> | null = null,
    classNames: ClassNames = () => null,
    /** Names of tensors whose values the result has, example by example. */
    private readonly exampleOutputs: readonly string[] = [],
  ) {
    this.#own = new Map(
      Object.entries(evalMetrics).map(([name, metric]) => [
        name,
        { names: metric.tensorNames(), accumulation: metric.accumulate(classNames) },
      ]),
    );
  }

  /** Batches that were added. */
  get batches(): number {
    return this.#batches;
  }

  /** Adds a batch and the results of the evaluation step. */
  add({ metrics, examples }: EvalOutputs, batch: Batch): void {
    this.#batches++;
    this.#means.add(metrics);
    for (const { names, accumulation } of this.#own.values()) {
      const tensors = names.map((name) => [name, examples[name] ?? (batch[name] as HostTensor)] as const);
      accumulation.add(Object.fromEntries(tensors));
    }
    if (this.exampleOutputs.length > 0) this.#addExamples(examples, batch);
    if (this.scores === null) return;
    if (examples.scores === undefined)
      throw new ConfigError(
        'The data has score metrics, and the model gives no `scores`, the log-likelihood of each example.',
      );
    this.scores.add((batch.exampleIds as HostTensor).data, examples.scores.data);
  }

  #addExamples(examples: ExampleTensors, batch: Batch): void {
    const ids = (batch[EXAMPLE_IDS] as HostTensor | undefined)?.data;
    const before = this.#examples.length;
    const tensors = this.exampleOutputs.map(
      (name) => [name, examples[name] ?? (batch[name] as HostTensor)] as const,
    );
    for (const [i, row] of exampleRows(batch).entries()) {
      const values = tensors.map(([name, tensor]) => [name, nestedRow(tensor, row)] as const);
      this.#examples.push({ [EXAMPLE_ID]: ids?.[row] ?? before + i, ...Object.fromEntries(values) });
    }
  }

  /** Every metric: the means, then the others, which win where names are equal, then those of scores. */
  result(): EvaluationResult {
    const means = this.#means.result();
    const metrics: Record<string, WeightedValue> = { ...means };
    const tables: Record<string, MetricTable> = {};
    const images: Record<string, MetricImages> = {};
    for (const [name, { accumulation }] of this.#own) {
      const value = accumulation.result(means);
      if ('weight' in value) metrics[name] = value;
      else if ('rows' in value) tables[name] = value;
      else images[name] = value;
    }
    const all = { ...metrics, ...this.scores?.result().metrics };
    return { metrics: all, tables, images, examples: this.#examples };
  }
}
