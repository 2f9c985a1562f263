/** @file Schedules made of others, or of values for intervals of steps (praxis/schedules.py). */
import { z } from 'zod';
import { instance } from '../../hparams/index.js';
import { check } from '../checkFields.js';
import { BaseSchedule, Constant } from './schedules.js';

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

/** Schedules in turn, each for its number of steps, over and over. Each sees the step of the whole, as in Pax. */
export class CycleSchedule extends BaseSchedule.with({
  schedules: z
    .array(instance(BaseSchedule, () => Constant.config()))
    .min(1)
    .describe('The schedules in turn.'),
  steps: z.array(z.int().positive()).describe('Steps of each turn: as many as schedules.'),
}) {
  override setup(): void {
    const { schedules, steps } = this.hp;
    check(
      this,
      schedules.length === steps.length,
      `len(schedules) != len(steps): ${schedules.length} vs ${steps.length}`,
    );
  }

  valueAt(step: number): number {
    const { schedules, steps } = this.hp;
    const ends = steps.map((_, i) => steps.slice(0, i + 1).reduce((sum, each) => sum + each, 0));
    return schedules[intervalOf(step % ends.at(-1)!, ends)]!.valueAt(step);
  }
}

/**
 * A decay that begins at any step of another schedule: a branch of a run that goes on from a checkpoint takes the run's own
 * schedule in `schedule`, and follows it until `startStep`. With form `sqrt` it is the cooldown of Hägele et al. (Scaling
 * Laws and Compute-Optimal Training Beyond Fixed Training Durations, 2024), 1 - sqrt(s) of the way.
 */
export class DecayBranch extends BaseSchedule.with(
  {
    schedule: instance(BaseSchedule, () => Constant.config()).describe('The schedule until startStep.'),
    startStep: z.int().nonnegative().describe('Step from which the value falls.'),
    endStep: z.int().positive().describe('Step from which the value stays.'),
    minRatio: z
      .number()
      .nonnegative()
      .default(0)
      .describe('The value from endStep on, as a fraction of that at startStep.'),
    form: z.enum(['linear', 'cosine', 'sqrt']).default('linear').describe('Form of the decay.'),
  },
  (schema) =>
    schema.refine(({ startStep, endStep }) => startStep < endStep, {
      path: ['endStep'],
      error: 'endStep must be above startStep',
    }),
) {
  valueAt(step: number): number {
    const { schedule, startStep, endStep, minRatio, form } = this.hp;
    if (step <= startStep) return schedule.valueAt(step);
    const way = Math.min(1, (step - startStep) / (endStep - startStep));
    return schedule.valueAt(startStep) * (minRatio + (1 - minRatio) * left[form](way));
  }
}

/** Of each form of decay: the part that is left after a part of the way. */
const left = {
  linear: (way: number): number => 1 - way,
  cosine: (way: number): number => 0.5 * (1 + Math.cos(Math.PI * way)),
  sqrt: (way: number): number => 1 - Math.sqrt(way),
};

/**
 * Another schedule over the tokens of the steps so far in place of the steps, for batches that grow: the same tokens then have the
 * same learning rate, whatever the batches. Phases are those of the input (`ScheduledInput`), with all that a step takes on all
 * hosts.
 */
export class ByTokens extends BaseSchedule.with({
  schedule: instance(BaseSchedule, () => Constant.config()).describe(
    'The schedule, whose steps count tokens: a warm-up of 1e6 steps is one of a million tokens.',
  ),
  phases: z
    .array(
      z.strictObject({
        fromStep: z.int().nonnegative().describe('The first step of the phase.'),
        tokensPerStep: z.int().positive().describe('Tokens of a batch on all hosts.'),
      }),
    )
    .min(1)
    .refine(([first]) => first!.fromStep === 0, { error: 'expected the first phase from step 0 on' })
    .refine((phases) => phases.every(({ fromStep }, i) => i === 0 || fromStep > phases[i - 1]!.fromStep), {
      error: 'expected phases in the order of their steps',
    })
    .describe('Tokens of a step, by step.'),
}) {
  valueAt(step: number): number {
    const { schedule, phases } = this.hp;
    const tokens = phases.reduce((sum, { fromStep, tokensPerStep }, i) => {
      const end = Math.min(step, phases[i + 1]?.fromStep ?? step);
      return sum + Math.max(0, end - fromStep) * tokensPerStep;
    }, 0);
    return schedule.valueAt(tokens);
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
