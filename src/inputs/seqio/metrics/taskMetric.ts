/** @file Metrics of tasks, over all examples of a split: of predictions, and of scores (SeqIO's metric functions). */
import { z } from 'zod';
import { builds, Configurable } from '../../../hparams/index.js';
import type { Example } from '../preprocessor.js';

/** A metric as a function. @param outputs the predictions, or the scores, in the order of the targets */
export type TaskMetric<Output> = (targets: readonly unknown[], outputs: readonly Output[]) => number;

/** Base of metrics of predictions: decoded texts, postprocessed like the targets. */
export abstract class BasePredictMetric extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** The metric of at least one example. */
  abstract compute(targets: readonly unknown[], predictions: readonly unknown[]): number;
}

/** Base of the metrics of scores: log-likelihoods of the examples, in nats, summed over the tokens with a weight. */
export abstract class BaseScoreMetric extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** The metric of at least one example. */
  abstract compute(targets: readonly unknown[], scores: readonly number[]): number;
}

/** Context of a postprocessor beside the text. */
export interface PostprocessContext {
  /** The example, as the preprocessors made it. */
  readonly example: Example;
  /** Whether the text is that of the example's targets; else it is decoded. */
  readonly isTarget: boolean;
}

/** A user's function: maps a text to the value that metrics compare. */
export type Postprocessor = (decoded: string, context: PostprocessContext) => unknown;

const isFunction = (made: unknown): boolean => typeof made === 'function';

/** The fields of a task for its metrics. */
export const metricFields = {
  predictMetrics: z
    .record(
      z.string().min(1),
      builds<BasePredictMetric | TaskMetric<unknown>>(
        'a predict metric, or a function of targets and predictions',
        (made) => made instanceof BasePredictMetric || isFunction(made),
      ),
    )
    .default({})
    .describe('Metrics of decoded targets by name, which decodes compute.'),
  scoreMetrics: z
    .record(
      z.string().min(1),
      builds<BaseScoreMetric | TaskMetric<number>>(
        'a score metric, or a function of targets and scores',
        (made) => made instanceof BaseScoreMetric || isFunction(made),
      ),
    )
    .default({})
    .describe("Metrics of the examples' log-likelihoods by name, which evaluations compute."),
  postprocessor: builds<Postprocessor>('a function of a decoded text', isFunction)
    .nullable()
    .default(null)
    .describe(
      'Maps the texts of targets and predictions to the values that metrics compare; null: the texts themselves.',
    ),
};

/** A target's references: where a postprocessor gives several, each is a right answer. */
export function referencesOf(target: unknown): readonly string[] {
  return (Array.isArray(target) ? target : [target]).map(String);
}

/** The mean of a measure of each example and its target. */
export function meanOver(
  targets: readonly unknown[],
  predictions: readonly unknown[],
  measure: (references: readonly string[], prediction: string) => number,
): number {
  const values = targets.map((target, i) => measure(referencesOf(target), String(predictions[i])));
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
