/** @file Schedules: factors of the learning rate as functions of the step (praxis/schedules.py). */
import { z } from 'zod';
import { Configurable, instance, registerAlias } from '../../hparams/index.js';
import { check } from '../checkFields.js';

/** A function of the step, evaluated on the host. The learning rate is `learningRate` times its value. */
export abstract class BaseSchedule extends Configurable {
  static override readonly isAbstract = true;
  /**
   * The value at a step.
   *
   * @param step finished train steps: 0 for the first update.
   */
  abstract valueAt(step: number): number;
}

/** The same value at every step. */
export class Constant extends BaseSchedule.with({
  value: z.number().default(1).describe('The value.'),
}) {
  valueAt(_step: number): number {
    return this.hp.value;
  }
}

const point = z.tuple([z.number(), z.number()]);

interface Ends {
  readonly start: readonly [number, number];
  readonly limit: readonly [number, number];
}

const inOrder = ({ start, limit }: Ends): boolean => start[0] < limit[0];
const notInOrder = { path: ['start'], error: 'x0 of start must be below x1 of limit' };
const startsAboveZero = ({ start }: Ends): boolean => start[1] > 0;
const notAboveZero = { path: ['start', 1], error: 'y0 of start must be above 0' };

/** `y0` before `x0`, `y1` from `x1`, a polynomial between. */
export class Polynomial extends BaseSchedule.with(
  {
    power: z.number().positive().default(1).describe('Power of the polynomial.'),
    start: point
      .default([0, 1])
      .describe('(x0, y0): the step where the change begins, and the value until then.'),
    limit: point
      .default([1, 1])
      .describe('(x1, y1): the step where the change ends, and the value from then on.'),
    origin: z.enum(['start', 'limit']).default('start').describe('End at which the polynomial is flat.'),
  },
  (schema) => schema.refine(inOrder, notInOrder),
) {
  valueAt(step: number): number {
    const [x0, y0] = this.hp.start;
    const [x1, y1] = this.hp.limit;
    if (step < x0) return y0;
    if (step >= x1) return y1;
    const ratio = (step - x0) / (x1 - x0);
    const { power, origin } = this.hp;
    return y0 + (origin === 'start' ? ratio ** power : 1 - (1 - ratio) ** power) * (y1 - y0);
  }
}

/** `Polynomial` of power 1. */
export class Linear extends Polynomial {}

/** Value of the line through two points in the logarithm, clamped to the two points. */
export function exponentialBetween(step: number, start: [number, number], limit: [number, number]): number {
  if (step <= start[0]) return start[1];
  if (step >= limit[0]) return limit[1];
  const ratio = (step - start[0]) / (limit[0] - start[0]);
  return Math.exp(Math.log(start[1]) + ratio * (Math.log(limit[1]) - Math.log(start[1])));
}

/** Value of the half cosine wave from one point down (or up) to the other, clamped to the two points. */
export function cosineBetween(step: number, start: [number, number], limit: [number, number]): number {
  if (step <= start[0]) return start[1];
  if (step >= limit[0]) return limit[1];
  const ratio = (step - start[0]) / (limit[0] - start[0]);
  return limit[1] + 0.5 * (1 + Math.cos(Math.PI * ratio)) * (start[1] - limit[1]);
}

/** From `start` to `limit` by a constant factor a step. */
export class Exponential extends BaseSchedule.with(
  {
    start: point.default([0, 1]).describe('(x0, y0), y0 > 0.'),
    limit: point.default([1, 0.5]).describe('(x1, y1), y1 > 0.'),
  },
  (schema) =>
    schema
      .refine(inOrder, notInOrder)
      .refine(startsAboveZero, notAboveZero)
      .refine(({ limit }) => limit[1] > 0, { path: ['limit', 1], error: 'y1 of limit must be above 0' }),
) {
  valueAt(step: number): number {
    return exponentialBetween(step, this.hp.start, this.hp.limit);
  }
}

/** Half a cosine wave from `initialValue` at step 0 to `finalValue` at `totalSteps`. */
export class Cosine extends BaseSchedule.with({
  initialValue: z.number().default(1).describe('Value at step 0.'),
  finalValue: z.number().default(0).describe('Value from step totalSteps on.'),
  totalSteps: z.int().positive().describe('Steps to the end of the decay.'),
}) {
  valueAt(step: number): number {
    const { initialValue, finalValue, totalSteps } = this.hp;
    return cosineBetween(step, [0, initialValue], [totalSteps, finalValue]);
  }
}

/** Half a cosine wave between two points. */
export class DelayedCosine extends BaseSchedule.with(
  {
    start: point.default([0, 1]).describe('(x0, y0), y0 > 0.'),
    limit: point.default([1, 0.5]).describe('(x1, y1), y1 >= 0.'),
  },
  (schema) =>
    schema
      .refine(inOrder, notInOrder)
      .refine(startsAboveZero, notAboveZero)
      .refine(({ limit }) => limit[1] >= 0, { path: ['limit', 1], error: 'y1 of limit must not be below 0' }),
) {
  valueAt(step: number): number {
    return cosineBetween(step, this.hp.start, this.hp.limit);
  }
}

const steps = z.array(z.int().nonnegative());

/** `values[i]` up to `boundaries[i]` (exclusive), the last value from the last boundary on. */
export class PiecewiseConstant extends BaseSchedule.with({
  boundaries: steps.describe('Steps at which the value changes, in ascending order.'),
  values: z.array(z.number()).describe('One value for each interval: one more than boundaries.'),
}) {
  override setup(): void {
    const { boundaries, values } = this.hp;
    check(
      this,
      values.length === boundaries.length + 1,
      `The number of values (${values.length}) is expected to be equal to the number of boundaries plus 1 ` +
        `(${boundaries.length + 1}).`,
    );
    check(this, isSorted(boundaries), `The boundaries ([${boundaries.join(', ')}]) must be sorted.`);
  }

  valueAt(step: number): number {
    return this.hp.values[intervalOf(step, this.hp.boundaries)]!;
  }
}

/** Schedules one after the other; each sees the steps since its own boundary. */
export class PiecewiseSchedule extends BaseSchedule.with({
  boundaries: steps.describe('Steps at which the next schedule takes over, in ascending order.'),
  schedules: z.array(instance(BaseSchedule, () => Constant.config())).describe('One more than boundaries.'),
}) {
  override setup(): void {
    const { boundaries, schedules } = this.hp;
    check(
      this,
      schedules.length === boundaries.length + 1,
      `len(schedules) != len(boundaries) + 1: ${schedules.length} vs ${boundaries.length}`,
    );
    check(this, isSorted(boundaries), `The boundaries ([${boundaries.join(', ')}]) must be sorted.`);
  }

  valueAt(step: number): number {
    const { boundaries, schedules } = this.hp;
    const interval = intervalOf(step, boundaries);
    return schedules[interval]!.valueAt(interval === 0 ? step : step - boundaries[interval - 1]!);
  }
}

/** The Transformer's schedule (Vaswani et al., 2017): linear warm-up, then the inverse square root of the step. */
export class Transformer extends BaseSchedule.with({
  warmupSteps: z.int().positive().default(4000).describe('Steps of linear increase.'),
  modelDim: z
    .int()
    .positive()
    .default(512)
    .describe('Width of the model; the peak is (modelDim * warmupSteps)^-0.5.'),
  workerReplicas: z.int().positive().default(1).describe('Multiplies warmupSteps.'),
  decayEnd: z.int().positive().nullable().default(null).describe('Step from which the value stays.'),
}) {
  valueAt(step: number): number {
    const { warmupSteps, modelDim, workerReplicas, decayEnd } = this.hp;
    const current = (decayEnd === null ? step : Math.min(step, decayEnd)) + 1;
    return modelDim ** -0.5 * Math.min(current * (warmupSteps * workerReplicas) ** -1.5, current ** -0.5);
  }
}

/** The inverse square root of the step, constant up to `decayStart`. */
export class SqrtDecay extends BaseSchedule.with({
  decayStart: z.int().positive().default(10000).describe('Step up to which the value is constant.'),
  multiplier: z.number().default(1).describe('Multiplies the value.'),
  offset: z.number().default(0).describe('Subtracted from the step.'),
}) {
  valueAt(step: number): number {
    const { decayStart, multiplier, offset } = this.hp;
    return multiplier / Math.sqrt(Math.max(step - offset, decayStart));
  }
}

function isSorted(boundaries: readonly number[]): boolean {
  return boundaries.every((boundary, i) => i === 0 || boundaries[i - 1]! <= boundary);
}

/** Index of the interval that `step` is in: the number of boundaries at or below it. */
function intervalOf(step: number, boundaries: readonly number[]): number {
  let interval = 0;
  while (interval < boundaries.length && step >= boundaries[interval]!) interval++;
  return interval;
}

// Documents name these by their room: layers and initialisers own the short names. Older documents have other names.
registerAlias('ConstantSchedule', Constant);
registerAlias('LinearSchedule', Linear);
registerAlias('TransformerSchedule', Transformer);
