/** @file Loss aggregators: which of a model's metrics are minimised together (praxis' base_metrics.LossAggregator). */
import { z } from 'zod';
import { Configurable } from '../hparams/index.js';

const metric = z.string().min(1);

/** Says which metrics a loss is the sum of. */
export abstract class BaseLossAggregator extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** Factors by metric, at least one: the loss is the sum of each metric times its factor. */
  abstract factors(): Readonly<Record<string, number>>;
}

/** One metric, as without an aggregator. */
export class LossAggregator extends BaseLossAggregator.with({
  lossKey: metric.default('total_loss').describe('The metric.'),
}) {
  override factors(): Record<string, number> {
    return { [this.hp.lossKey]: 1 };
  }
}

/** The sum of several metrics. */
export class MultiLossAggregator extends BaseLossAggregator.with({
  lossKeys: z.array(metric).min(1).describe('The metrics.'),
}) {
  override factors(): Record<string, number> {
    return Object.fromEntries(this.hp.lossKeys.map((key) => [key, 1]));
  }
}

/** The sum of several metrics, each times a factor. */
export class WeightedLossAggregator extends BaseLossAggregator.with({
  lossWeights: z
    .record(metric, z.number())
    .refine((weights) => Object.keys(weights).length > 0, { error: 'expected at least one metric' })
    .describe('Factors by metric.'),
}) {
  override factors(): Readonly<Record<string, number>> {
    return this.hp.lossWeights;
  }
}
