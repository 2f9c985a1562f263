/** @file Adagrad (Duchi et al., 2011) and RMSProp (Tieleman and Hinton, 2012). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { BaseOptimizer } from './optimizer.js';
import type { Direction, RuleInputs } from './rule.js';
import { type SlotSpecs, type SlotVariable, slotLike, squaresLike } from './slots.js';

/**
 * Adagrad, with Pax's defaults:
 *
 *     sum = sum + g²                           sum begins at initialAccumulatorValue
 *     direction = g / sqrt(sum + epsilon)
 */
export class Adagrad extends BaseOptimizer.with(
  {
    initialAccumulatorValue: z
      .number()
      .nonnegative()
      .default(0.1)
      .describe('Sum of squared gradients before the first step.'),
    epsilon: z.number().nonnegative().default(1e-7).describe('Added to the sum inside of the root.'),
  },
  (schema) =>
    // Elements without a gradient, padding among them, would become 0 / 0.
    schema.refine(({ initialAccumulatorValue, epsilon }) => initialAccumulatorValue > 0 || epsilon > 0, {
      error: 'initialAccumulatorValue and epsilon must not both be 0',
    }),
) {
  override get skipsZeroGradients(): boolean {
    return true;
  }

  slotSpecs(variable: SlotVariable): SlotSpecs {
    return { sum: squaresLike(variable, this.hp.initialAccumulatorValue) };
  }

  protected direction({ grad, slots }: RuleInputs): Direction {
    const sum = tf.add(slots.sum!, tf.square(grad));
    return { direction: tf.div(grad, tf.sqrt(tf.add(sum, this.hp.epsilon))), slots: { sum } };
  }
}

/**
 * RMSProp as torch.optim.RMSprop has it, with the v of Trax for `initialScale: 1`:
 *
 *     v = decay v + (1 - decay) g²             centered: u = decay u + (1 - decay) g, else u = 0
 *     scaled = g / (sqrt(v - u²) + epsilon)
 *     direction = m = momentum m + scaled
 *
 * The slot `m` is there only with momentum, `u` only if centered.
 */
export class RmsProp extends BaseOptimizer.with({
  decay: z.number().min(0).lt(1).default(0.9).describe('Decay of the mean of squared gradients.'),
  epsilon: z.number().positive().default(1e-8).describe('Added to the denominator outside of the root.'),
  initialScale: z
    .number()
    .nonnegative()
    .default(0)
    .describe("Mean of squared gradients before the first step, as optax's initial_scale; Trax has 1."),
  momentum: z
    .number()
    .min(0)
    .lt(1)
    .default(0)
    .describe('Share of the last direction that is kept; 0 for none.'),
  centered: z
    .boolean()
    .default(false)
    .describe('Whether the denominator is the standard deviation of gradients, not their root mean square.'),
}) {
  slotSpecs(variable: SlotVariable): SlotSpecs {
    const { momentum, centered, initialScale } = this.hp;
    const slot = slotLike(variable);
    return {
      v: squaresLike(variable, initialScale),
      ...(centered && { u: slot }),
      ...(momentum > 0 && { m: slot }),
    };
  }

  protected direction({ grad, slots }: RuleInputs): Direction {
    const { decay, epsilon, momentum, centered } = this.hp;
    const mean = (slot: Tensor, value: Tensor): Tensor =>
      tf.add(tf.mul(slot, decay), tf.mul(value, 1 - decay));
    const v = mean(slots.v!, tf.square(grad));
    const next: Record<string, Tensor> = { v };
    let variance = v;
    if (centered) {
      next.u = mean(slots.u!, grad);
      // Rounding may bring a variance of nearly 0 below it.
      variance = tf.relu(tf.sub(v, tf.square(next.u)));
    }
    const scaled = tf.div(grad, tf.add(tf.sqrt(variance), epsilon));
    if (momentum === 0) return { direction: scaled, slots: next };
    next.m = tf.add(tf.mul(slots.m!, momentum), scaled);
    return { direction: next.m, slots: next };
  }
}
