/** @file Schedule-free AdamW: an average of the steps in place of a decay of the learning rate (Defazio et al., 2024). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { check } from '../checkFields.js';
import { BaseOptimizer, type GroupState } from './optimizer.js';
import type { Direction, RuleInputs } from './rule.js';
import { type SlotSpecs, type SlotVariable, squaresLike } from './slots.js';

/** The weight of the newest steps in the average, and what it follows from. */
interface Weighted {
  readonly step: number;
  /** Highest learning rate. */
  readonly most: number;
  readonly sum: number;
  readonly share: number;
}

/**
 * Schedule-free AdamW. Training computes gradients at y, the parameters; z takes the steps, and x, the average of z, is
 * evaluated and exported: the average of parameters, slot `ema`. With t = step + 1:
 *
 *     v = beta2 v + (1 - beta2) g²             u = g / (sqrt(v / (1 - beta2^t)) + epsilon) + decoupledWeightDecay y
 *     z = z - lr u                             x = (1 - c) x + c z
 *     y = (1 - beta1) z + beta1 x              c = w / sum of all w, w = t^weightPower · highest lr^weightLrPower
 *
 * The learning rate stays: a warm-up is all the schedule that it takes. The slot `ahead` holds z - y.
 */
export class ScheduleFreeAdamW extends BaseOptimizer.with({
  beta1: z.number().gt(0).lt(1).default(0.9).describe('Share of the average in the parameters.'),
  beta2: z.number().min(0).lt(1).default(0.999).describe('Decay of the mean of squared gradients.'),
  epsilon: z.number().positive().default(1e-8).describe('Added to the denominator outside of the root.'),
  weightPower: z
    .number()
    .nonnegative()
    .default(0)
    .describe('Power of the step in its weight in the average.'),
  weightLrPower: z
    .number()
    .nonnegative()
    .default(2)
    .describe('Power of the highest learning rate so far in the weight of a step.'),
}) {
  private last: Weighted | undefined;

  override setup(): void {
    super.setup();
    const { emaDecay, fixedWeightDecay } = this.hp;
    check(this, emaDecay === 0, `emaDecay ${emaDecay}: the average is the rule's own; leave it at 0.`);
    check(this, !fixedWeightDecay, 'weight decay is a part of the step: set fixedWeightDecay to false.');
  }

  override get averages(): boolean {
    return true;
  }

  override get evaluatesAverage(): boolean {
    return true;
  }

  slotSpecs(variable: SlotVariable): SlotSpecs {
    return { v: squaresLike(variable), ahead: { shape: variable.shape } };
  }

  /** Without the shrinking of parameters: their decay is in the direction. */
  override hostScalars(step: number, decays: boolean): Record<string, number> {
    const { keep: _, ...others } = super.hostScalars(step, decays);
    return others;
  }

  protected override scalarsAt(step: number): Record<string, number> {
    const { beta1, beta2 } = this.hp;
    const rate = this.learningRateAt(step);
    const { share } = this.weighted(step);
    return {
      unbiasV: 1 / (1 - beta2 ** (step + 1)),
      share,
      others: 1 - share,
      ofGradient: rate * (1 - beta1 * (1 - share)),
      ofAhead: rate * beta1,
    };
  }

  protected direction({ grad, param, slots, scalars, variables }: RuleInputs): Direction {
    const { beta2, epsilon, decoupledWeightDecay } = this.hp;
    const v = tf.add(tf.mul(slots.v!, beta2), tf.mul(tf.square(grad), 1 - beta2));
    const scaled = tf.div(grad, tf.add(tf.sqrt(tf.mul(v, scalars.unbiasV!)), epsilon));
    const decays = decoupledWeightDecay > 0 && variables.decays;
    const u = decays ? tf.add(scaled, tf.mul(param, decoupledWeightDecay)) : scaled;
    const ahead = tf.mul(tf.sub(slots.ahead!, tf.mul(u, scalars.ofAhead!)), scalars.others!);
    const direction = tf.sub(tf.mul(u, scalars.ofGradient!), tf.mul(slots.ahead!, scalars.share!));
    return { direction, slots: { v, ahead } };
  }

  /** The direction has the learning rate in it. */
  protected override stepAlong(direction: Tensor): Tensor {
    return direction;
  }

  override averaged({ param, slots }: GroupState<Tensor>): Tensor {
    return tf.sub(param, tf.mul(slots.ahead!, 1 / this.hp.beta1 - 1));
  }

  /** Sums of all steps up to one, from those of the step before it where these are at hand. */
  private weighted(step: number): Weighted {
    const { weightPower, weightLrPower } = this.hp;
    let found = this.last !== undefined && this.last.step <= step ? this.last : undefined;
    for (let t = found === undefined ? 0 : found.step + 1; t <= step; t++) {
      const most = Math.max(found?.most ?? 0, this.learningRateAt(t));
      const weight = (t + 1) ** weightPower * most ** weightLrPower;
      const sum = (found?.sum ?? 0) + weight;
      found = { step: t, most, sum, share: sum > 0 ? weight / sum : 0 };
    }
    this.last = found;
    return found!;
  }
}
