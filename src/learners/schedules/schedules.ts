/** @file Schedules: factors of the learning rate as functions of the step (praxis/schedules.py). */
import { z } from 'zod';
import { Configurable, registerAlias } from '../../hparams/index.js';

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

/** `initialValue` until `startStep`, then half of it after every `halfLifeSteps`, but not below `min` times it. */
export class ContinuousSchedule extends BaseSchedule.with({
  initialValue: z.number().default(1).describe('Value until startStep.'),
  startStep: z.int().nonnegative().default(400_000).describe('Step at which the decay starts.'),
  halfLifeSteps: z.int().positive().default(100_000).describe('Steps in which the value halves.'),
  min: z.number().positive().max(1).default(0.01).describe('The least value, as a fraction of initialValue.'),
}) {
  valueAt(step: number): number {
    const { initialValue, startStep, halfLifeSteps, min } = this.hp;
    return initialValue * Math.max(min, 0.5 ** (Math.max(0, step - startStep) / halfLifeSteps));
  }
}

/**
 * An inverse power of the step behind a linear warm-up, with a linear tail to 0: (1 + s / timescale)^-power at s steps
 * behind the warm-up. Power 0.5 is the schedule of Zhai et al. (Scaling Vision Transformers, 2022), whose cooldown begins at any step.
 */
export class InversePower extends BaseSchedule.with(
  {
    warmupSteps: z.int().nonnegative().default(0).describe('Steps of linear increase to 1.'),
    power: z.number().positive().default(0.5).describe('Power by which the value falls.'),
    timescale: z.number().positive().default(10_000).describe('Steps after which 1 has become 2^-power.'),
    tailStart: z
      .int()
      .nonnegative()
      .nullable()
      .default(null)
      .describe('Step at which the tail starts; null for none.'),
    tailEnd: z.int().positive().nullable().default(null).describe('Step from which the value is 0.'),
  },
  (schema) =>
    schema
      .refine(({ tailStart, tailEnd }) => (tailStart === null) === (tailEnd === null), {
        path: ['tailEnd'],
        error: 'tailStart and tailEnd must be given together',
      })
      .refine(({ warmupSteps, tailStart }) => tailStart === null || tailStart >= warmupSteps, {
        path: ['tailStart'],
        error: 'tailStart must not be below warmupSteps',
      })
      .refine(({ tailStart, tailEnd }) => tailStart === null || tailEnd === null || tailStart < tailEnd, {
        path: ['tailEnd'],
        error: 'tailEnd must be above tailStart',
      }),
) {
  valueAt(step: number): number {
    const { warmupSteps, power, timescale, tailStart, tailEnd } = this.hp;
    if (step < warmupSteps) return step / warmupSteps;
    const falling = (at: number): number => (1 + (at - warmupSteps) / timescale) ** -power;
    if (tailStart === null || tailEnd === null || step < tailStart) return falling(step);
    return (falling(tailStart) * Math.max(0, tailEnd - step)) / (tailEnd - tailStart);
  }
}

// Documents name these by their room: layers and initialisers own the short names. Older documents have other names.
registerAlias('ConstantSchedule', Constant);
registerAlias('LinearSchedule', Linear);
registerAlias('TransformerSchedule', Transformer);
