/** @file Schedules that warm up linearly and then decay (praxis/schedules.py). */
import { z } from 'zod';
import { check } from '../checkFields.js';
import { BaseSchedule, cosineBetween, exponentialBetween } from './schedules.js';

/**
 * Linear warm-up to `max`, `max` until `decayStart`, decay to `max * minRatio` at `decayEnd`, constant from there.
 *
 * During warm-up the value at step s (0 for the first update) is
 * - `max * s / warmupSteps` where `rampupFromZero` (Pax; nanoGPT until 2024): the first update has rate 0;
 * - `max * (s + 1) / (warmupSteps + 1)` where not (nanoGPT since): every update moves.
 *
 * nanoGPT's `get_lr` is `LinearRampupCosineDecay` with learningRate = learning_rate, warmupSteps =
 * decayStart = warmup_iters, decayEnd = lr_decay_iters, minRatio = min_lr / learning_rate.
 */
abstract class LinearRampupDecay extends BaseSchedule.with({
  warmupSteps: z.int().nonnegative().default(0).describe('Steps of linear increase.'),
  decayStart: z.int().nonnegative().default(0).describe('Step at which the decay starts.'),
  decayEnd: z.int().nonnegative().default(0).describe('Step at which the decay ends.'),
  minRatio: z
    .number()
    .nonnegative()
    .default(0.01)
    .describe('The value after decayEnd, as a fraction of max.'),
  max: z.number().positive().default(1).describe('The largest value of the schedule.'),
  rampupFromZero: z
    .boolean()
    .default(true)
    .describe('Warm-up as max * step / warmupSteps; if false, as max * (step + 1) / (warmupSteps + 1).'),
}) {
  static override readonly isAbstract = true;
  override setup(): void {
    const { warmupSteps, decayStart, decayEnd } = this.hp;
    check(
      this,
      decayStart >= warmupSteps,
      `decayStart (${decayStart}) must be greater than or equal to warmupSteps (${warmupSteps}).`,
    );
    check(
      this,
      decayEnd >= decayStart,
      `decayEnd (${decayEnd}) must be greater than or equal to decayStart (${decayStart}).`,
    );
  }

  valueAt(step: number): number {
    const { warmupSteps, decayStart, decayEnd, max, minRatio, rampupFromZero } = this.hp;
    if (step < warmupSteps)
      return max * (rampupFromZero ? step / warmupSteps : (step + 1) / (warmupSteps + 1));
    if (step < decayStart) return max;
    if (step >= decayEnd) return max * minRatio;
    return this.decayAt(step, [decayStart, max], [decayEnd, max * minRatio]);
  }

  /** The value between the two points, `start` inclusive, `limit` exclusive. */
  protected abstract decayAt(step: number, start: [number, number], limit: [number, number]): number;
}

/** Linear warm-up, then a half cosine wave. */
export class LinearRampupCosineDecay extends LinearRampupDecay.with({
  startStep: z
    .int()
    .nonnegative()
    .default(0)
    .describe(
      'Step at which all of it starts; before, the value is 1 (Pax). The other steps count from here.',
    ),
}) {
  override valueAt(step: number): number {
    const { startStep } = this.hp;
    return step < startStep ? 1 : super.valueAt(step - startStep);
  }

  protected override decayAt(step: number, start: [number, number], limit: [number, number]): number {
    return cosineBetween(step, start, limit);
  }
}

/** Linear warm-up, then a polynomial decay: linear where `power` is 1. */
export class LinearRampupPolynomialDecay extends LinearRampupDecay.with({
  power: z.number().positive().default(1).describe('Power of the polynomial.'),
}) {
  protected override decayAt(step: number, start: [number, number], limit: [number, number]): number {
    return start[1] + ((step - start[0]) / (limit[0] - start[0])) ** this.hp.power * (limit[1] - start[1]);
  }
}

/** Linear warm-up, then a decay by a constant factor a step. */
export class LinearRampupExponentialDecay extends LinearRampupDecay {
  override setup(): void {
    super.setup();
    check(this, this.hp.minRatio > 0, `${this.hp.minRatio} must be > 0 (minRatio)`);
  }

  protected override decayAt(step: number, start: [number, number], limit: [number, number]): number {
    return exponentialBetween(step, start, limit);
  }
}

/** Linear warm-up to `peak`, then the inverse square root of the step. */
export class LinearRampupSqrtDecay extends BaseSchedule.with({
  peak: z.number().default(1).describe('The largest value, at step warmupSteps.'),
  warmupSteps: z.int().positive().default(4000).describe('Steps of linear increase.'),
}) {
  valueAt(step: number): number {
    const { peak, warmupSteps } = this.hp;
    const current = Math.max(step, 1);
    return peak * Math.min(current / warmupSteps, Math.sqrt(warmupSteps / current));
  }
}

/** Linear from 0 to `values[0]` at `boundaries[0]`, then `values[i]` from `boundaries[i]` on. */
export class LinearRampupPiecewiseConstant extends BaseSchedule.with({
  boundaries: z.array(z.int().positive()).describe('Steps at which the value changes, in ascending order.'),
  values: z.array(z.number()).describe('The value from each boundary on.'),
}) {
  override setup(): void {
    const { boundaries, values } = this.hp;
    check(
      this,
      boundaries.length >= 1 && boundaries.length === values.length,
      `The number of values (${values.length}) is expected to be equal to the number of boundaries ` +
        `(${boundaries.length}), at least 1.`,
    );
    check(
      this,
      boundaries.every((boundary, i) => i === 0 || boundaries[i - 1]! <= boundary),
      `The boundaries ([${boundaries.join(', ')}]) must be sorted.`,
    );
  }

  valueAt(step: number): number {
    const { boundaries, values } = this.hp;
    if (step < boundaries[0]!) return (values[0]! * step) / boundaries[0]!;
    return values[boundaries.findLastIndex((boundary) => step >= boundary)]!;
  }
}
