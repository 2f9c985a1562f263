/** @file Measurements of a trial at steps, and their metrics as one set (Pax's cross-step aggregators). */
import { z } from 'zod';
import { Configurable } from '../hparams/index.js';
import { isNamed, type Metrics } from './searchRewards.js';

/** Metrics of a trial at a step, those of earlier steps included where none are newer. */
export interface Measurement {
  readonly step: number;
  readonly metrics: Metrics;
  /** One an objective. */
  readonly rewards: readonly number[];
}

/** The first reward, or the value of the metric of the name. */
export function watched({ metrics, rewards }: Measurement, metric: string | null): number {
  if (metric === null) return rewards[0]!;
  const found = Object.keys(metrics).find((name) => isNamed(name, metric));
  return found === undefined ? Number.NaN : metrics[found]!;
}

/** Metrics of all steps as one set, from which the reward of a trial follows. */
export abstract class CrossStepMetricAggregator extends Configurable {
  static override readonly isAbstract: boolean = true;

  /** @param measurements at least one, in the order of steps. */
  abstract aggregate(measurements: readonly Measurement[]): Metrics;
}

/** The last ones. */
export class LastReportedMetricValues extends CrossStepMetricAggregator {
  aggregate(measurements: readonly Measurement[]): Metrics {
    return measurements.at(-1)!.metrics;
  }
}

/** Means over steps. */
export class AverageMetricValues extends CrossStepMetricAggregator.with({
  lastN: z.int().positive().nullable().default(null).describe('The last so many steps; null: all.'),
}) {
  aggregate(measurements: readonly Measurement[]): Metrics {
    const names = new Set(measurements.flatMap(({ metrics }) => Object.keys(metrics)));
    const meanOf = (name: string): number => {
      const values = measurements.flatMap(({ metrics }) => metrics[name] ?? []);
      const last = values.slice(-(this.hp.lastN ?? values.length));
      return last.reduce((sum, value) => sum + value, 0) / last.length;
    };
    return Object.fromEntries([...names].map((name) => [name, meanOf(name)]));
  }
}

const metric = z
  .string()
  .nullable()
  .default(null)
  .describe('The metric that decides, or its end; null: the reward.');

function stepWith(
  measurements: readonly Measurement[],
  name: string | null,
  isBetter: (value: number, best: number) => boolean,
): Metrics {
  // Of equal ones the last, as in Pax.
  return measurements.reduce((best, each) =>
    isBetter(watched(best, name), watched(each, name)) ? best : each,
  ).metrics;
}

/** Those of the step at which one is highest. */
export class MetricsWithMaxValue extends CrossStepMetricAggregator.with({ metric }) {
  aggregate(measurements: readonly Measurement[]): Metrics {
    return stepWith(measurements, this.hp.metric, (value, other) => value > other || Number.isNaN(other));
  }
}

/** Those of the step at which one is lowest. */
export class MetricsWithMinValue extends CrossStepMetricAggregator.with({ metric }) {
  aggregate(measurements: readonly Measurement[]): Metrics {
    return stepWith(measurements, this.hp.metric, (value, other) => value < other || Number.isNaN(other));
  }
}
