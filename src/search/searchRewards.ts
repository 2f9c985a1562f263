/** @file Rewards of trials by their metrics (paxml/automl.py): one objective, or several, alone or as one. */
import { z } from 'zod';
import { ConfigError, Configurable, didYouMean, instance } from '../hparams/index.js';

/** Metrics by name, as in metrics.jsonl: `eval_test_validation/total_loss`. */
export type Metrics = Readonly<Record<string, number>>;

const aggregators = {
  max: (values: readonly number[]) => Math.max(...values),
  min: (values: readonly number[]) => Math.min(...values),
  average: (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length,
  sum: (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0),
};

const metricName = z
  .string()
  .min(1)
  .describe('PROGRAM/NAME as in metrics.jsonl, or its end; * stands for any part without a slash.');
const aggregator = z
  .enum(['max', 'min', 'average', 'sum'])
  .nullable()
  .default(null)
  .describe('One value of the metrics that the name matches; null: it must match one.');
const goal = z.enum(['maximize', 'minimize']).default('maximize').describe('Which values are better.');
const rewardForNan = z
  .number()
  .nullable()
  .default(null)
  .describe('Reward where a metric is not a number; null: the trial is infeasible.');

/** Whether a metric has the name, or matches it. */
export function isNamed(metric: string, name: string): boolean {
  const pattern = name.split('*').map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, String.raw`\$&`));
  return new RegExp(`^(?:.*/)?${pattern.join('[^/]*')}$`).test(metric);
}

/** The value of a metric. @throws ConfigError where none has the name, or several have. */
function metricValue(name: string, metrics: Metrics, how: keyof typeof aggregators | null): number {
  const found = Object.keys(metrics).filter((metric) => isNamed(metric, name));
  if (found.length === 1) return metrics[found[0]!]!;
  if (found.length > 1 && how !== null) return aggregators[how](found.map((metric) => metrics[metric]!));
  const names = Object.keys(metrics);
  throw new ConfigError(
    found.length > 1
      ? `The metrics ${found.join(', ')} are all named '${name}': name one of them, or set aggregator.`
      : `No metric is named '${name}'.${didYouMean(name, names)} There are: ${names.join(', ') || 'none'}.`,
  );
}

/** Rewards of a trial. */
export abstract class BaseReward extends Configurable {
  static override readonly isAbstract: boolean = true;

  /** Names of the metrics that it reads. */
  abstract get usedMetrics(): readonly string[];

  /** One reward an objective, higher ones are better. @throws ConfigError for a metric that is missing */
  abstract rewardsOf(metrics: Metrics): readonly number[];
}

/** The value of a metric. */
export class SingleObjective extends BaseReward.with({ metric: metricName, aggregator, goal, rewardForNan }) {
  get usedMetrics(): readonly string[] {
    return [this.hp.metric];
  }

  rewardsOf(metrics: Metrics): readonly number[] {
    const value = metricValue(this.hp.metric, metrics, this.hp.aggregator);
    if (Number.isNaN(value)) return [this.hp.rewardForNan ?? value];
    return [this.hp.goal === 'minimize' ? -value : value];
  }
}

/** One value of several metrics. */
export abstract class MultiObjectiveAggregator extends Configurable {
  static override readonly isAbstract: boolean = true;
  abstract aggregate(values: readonly number[]): number;
}

/** Σ w v ÷ Σ |w|. */
export class WeightedSum extends MultiObjectiveAggregator.with({
  weights: z
    .array(z.number())
    .min(1)
    .refine((weights) => weights.some((weight) => weight !== 0), 'must not all be 0')
    .describe('One for each metric.'),
}) {
  aggregate(values: readonly number[]): number {
    const { weights } = this.hp;
    if (values.length !== weights.length)
      throw new ConfigError(
        `WeightedSum: expected ${weights.length} metrics, as weights, got ${values.length}.`,
      );
    const total = weights.reduce((sum, weight) => sum + Math.abs(weight), 0);
    return weights.reduce((sum, weight, i) => sum + weight * values[i]!, 0) / total;
  }
}

/** A quality and a cost as one value. */
abstract class TwoObjectives extends MultiObjectiveAggregator.with({
  costObjective: z.number().positive().describe('The cost to reach.'),
  exponent: z.number().default(-0.07).describe('The more negative, the more a cost beyond it counts.'),
}) {
  static override readonly isAbstract: boolean = true;

  aggregate(values: readonly number[]): number {
    const [quality, cost] = values;
    if (values.length !== 2)
      throw new ConfigError(
        `${this.constructor.name}: expected a quality and a cost, got ${values.length} metrics.`,
      );
    return this.combined(quality!, cost! / this.hp.costObjective);
  }

  /** @param ratio of the cost to its objective. */
  protected abstract combined(quality: number, ratio: number): number;
}

/** quality + exponent · |ratio − 1| (TuNAS, Bender et al., 2020). */
export class TunasAbsolute extends TwoObjectives {
  protected combined(quality: number, ratio: number): number {
    return quality + this.hp.exponent * Math.abs(ratio - 1);
  }
}

/** quality · min(ratio^exponent, 1) (MnasNet, Tan et al., 2018, with α = 0). */
export class MnasHard extends TwoObjectives {
  protected combined(quality: number, ratio: number): number {
    return quality * Math.min(ratio ** this.hp.exponent, 1);
  }
}

/** quality · ratio^exponent (MnasNet, with α = β). */
export class MnasSoft extends TwoObjectives {
  protected combined(quality: number, ratio: number): number {
    return quality * ratio ** this.hp.exponent;
  }
}

/** Values of several metrics: as one by an aggregator, or else an objective each. */
export class MultiObjective extends BaseReward.with({
  metrics: z.array(metricName).min(1).describe('Names of the metrics.'),
  aggregator: instance(MultiObjectiveAggregator, null)
    .nullable()
    .default(null)
    .describe('One value of them all; null: an objective each, for algorithms that know several.'),
  goal,
  rewardForNan,
}) {
  get usedMetrics(): readonly string[] {
    return this.hp.metrics;
  }

  rewardsOf(metrics: Metrics): readonly number[] {
    const { aggregator: combine, rewardForNan: otherwise } = this.hp;
    const values = this.hp.metrics.map((name) => metricValue(name, metrics, null));
    const sign = this.hp.goal === 'minimize' ? -1 : 1;
    const rewards = (combine === null ? values : [combine.aggregate(values)]).map((value) => sign * value);
    return otherwise !== null && values.some(Number.isNaN) ? rewards.map(() => otherwise) : rewards;
  }
}
