/** @file Early stopping of trials beside others: by value, rank, and expected gain. */
import { z } from 'zod';
import { Configurable } from '../hparams/index.js';
import { normalMass } from './algorithms/tpe/normal.js';
import { type Measurement, watched } from './trialMeasurements.js';

const metric = z
  .string()
  .nullable()
  .default(null)
  .describe('The metric that decides, or its end; null: the reward.');
const maximize = z.boolean().default(true).describe('Whether higher values are better.');
const step = z.int().nonnegative();

/** A rule by which a trial ends early. */
export abstract class BaseEarlyStopping extends Configurable {
  static override readonly isAbstract: boolean = true;

  /**
   * Why a trial should end, if it should.
   *
   * @param own measurements, in the order of steps.
   * @param others measurements of the other trials; `isDone` of those that came to their end.
   */
  abstract reasonToStop(own: readonly Measurement[], others: readonly OtherTrial[]): string | undefined;
}

/** Another trial. */
export interface OtherTrial {
  readonly measurements: readonly Measurement[];
  readonly isDone: boolean;
}

/** The first measurement at a step or behind it. */
function at(measurements: readonly Measurement[], from: number): Measurement | undefined {
  return measurements.find((each) => each.step >= from);
}

/** Ends a trial whose value at a step is worse than a threshold. */
export class EarlyStoppingByValue extends BaseEarlyStopping.with({
  stepValues: z
    .array(z.tuple([step, z.number()]))
    .min(1)
    .describe('Pairs of a step and the threshold there.'),
  metric,
  maximize,
}) {
  reasonToStop(own: readonly Measurement[]): string | undefined {
    for (const [from, threshold] of this.hp.stepValues) {
      const found = at(own, from);
      if (found === undefined) continue;
      const value = watched(found, this.hp.metric);
      if (this.hp.maximize ? value < threshold : value > threshold)
        return `${value} at step ${found.step} is worse than ${threshold}`;
    }
    return undefined;
  }
}

/** Ends a trial that ranks too low at a step among all trials that were there. */
export class EarlyStoppingByRank extends BaseEarlyStopping.with({
  stepRanks: z
    .array(z.tuple([step, z.number().positive(), z.int().positive()]))
    .min(1)
    .describe(
      'Step, the lowest rank (or, below 1, share of the trials) that goes on, and the fewest trials to compare.',
    ),
  metric,
  maximize,
}) {
  reasonToStop(own: readonly Measurement[], others: readonly OtherTrial[]): string | undefined {
    for (const [from, limit, fewest] of this.hp.stepRanks) {
      const found = at(own, from);
      if (found === undefined) continue;
      const value = watched(found, this.hp.metric);
      const values = others.flatMap(({ measurements }) => {
        const other = at(measurements, from);
        return other === undefined ? [] : watched(other, this.hp.metric);
      });
      const count = values.length + 1;
      if (count < fewest) continue;
      const better = values.filter((each) => (this.hp.maximize ? each > value : each < value)).length;
      const most = limit < 1 ? Math.ceil(limit * count) : limit;
      if (better >= most) return `rank ${better + 1} of ${count} at step ${found.step}`;
    }
    return undefined;
  }
}

/**
 * Ends a trial that is not expected to become better than the best one. Its last reward follows from that of now by a line
 * through those of the finished trials; the expected gain is that of a normal distribution around it (Jones et al., 1998:
 * expected improvement).
 */
export class EarlyStoppingByExpectedGain extends BaseEarlyStopping.with({
  minGain: z.number().positive().describe('The smallest expected gain in reward for which a trial goes on.'),
  startStep: step.default(0).describe('First step at which a trial may end.'),
  minTrials: z.int().min(3).default(5).describe('The fewest finished trials to learn from.'),
}) {
  reasonToStop(own: readonly Measurement[], others: readonly OtherTrial[]): string | undefined {
    const now = own.at(-1);
    if (now === undefined || now.step < this.hp.startStep) return undefined;
    const pairs = others
      .filter(({ isDone }) => isDone)
      .flatMap(({ measurements }): [number, number][] => {
        const [then, last] = [at(measurements, now.step), measurements.at(-1)];
        return then && last ? [[then.rewards[0]!, last.rewards[0]!]] : [];
      })
      .filter((pair) => pair.every(Number.isFinite));
    if (pairs.length < this.hp.minTrials) return undefined;
    const best = Math.max(...pairs.map(([, last]) => last));
    const gain = expectedGain(predicted(pairs, now.rewards[0]!), best);
    return gain < this.hp.minGain
      ? `expected gain ${gain.toPrecision(2)} at step ${now.step} is below ${this.hp.minGain}`
      : undefined;
  }
}

interface Prediction {
  readonly mean: number;
  readonly deviation: number;
}

/** Least squares through pairs of now and then. */
function predicted(pairs: readonly (readonly [number, number])[], now: number): Prediction {
  const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [meanOf(pairs.map(([a]) => a)), meanOf(pairs.map(([, b]) => b))];
  const spread = pairs.reduce((sum, [a]) => sum + (a - x) ** 2, 0);
  const slope = spread === 0 ? 0 : pairs.reduce((sum, [a, b]) => sum + (a - x) * (b - y), 0) / spread;
  const squares = pairs.reduce((sum, [a, b]) => sum + (b - y - slope * (a - x)) ** 2, 0);
  return { mean: y + slope * (now - x), deviation: Math.sqrt(squares / (pairs.length - 2)) };
}

function expectedGain({ mean, deviation }: Prediction, best: number): number {
  if (!(deviation > 0)) return Math.max(0, mean - best);
  const z = (mean - best) / deviation;
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  return deviation * (z * normalMass(Number.NEGATIVE_INFINITY, z) + density);
}
