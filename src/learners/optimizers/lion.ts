/** @file Lion: the sign of a mean of gradients (Chen et al., 2023). */
import { z } from 'zod';
import { tf } from '../../compiler/index.js';
import { BaseOptimizer } from './optimizer.js';
import type { Direction, RuleInputs } from './rule.js';
import { type SlotSpecs, type SlotVariable, slotLike } from './slots.js';

const beta = z.number().min(0).lt(1);

/**
 * Lion, with Pax's and optax's defaults:
 *
 *     direction = sign(beta1 m + (1 - beta1) g)
 *     m = beta2 m + (1 - beta2) g
 *
 * Every element moves by the learning rate, so it takes a learning rate three to ten times smaller than Adam's, and a weight
 * decay as many times larger.
 */
export class Lion extends BaseOptimizer.with({
  beta1: beta.default(0.9).describe('Weight of the mean of gradients in the direction.'),
  beta2: beta.default(0.99).describe('Decay of the mean of gradients.'),
  muDtype: z
    .enum(['float32', 'bfloat16'])
    .default('float32')
    .describe("Storage of the mean of gradients, as optax's mu_dtype; Pax has bfloat16."),
}) {
  slotSpecs(variable: SlotVariable): SlotSpecs {
    return { m: slotLike(variable, 0, this.hp.muDtype) };
  }

  protected direction({ grad, slots: { m } }: RuleInputs): Direction {
    const { beta1, beta2 } = this.hp;
    return {
      direction: tf.sign(tf.add(tf.mul(m!, beta1), tf.mul(grad, 1 - beta1))),
      slots: { m: tf.add(tf.mul(m!, beta2), tf.mul(grad, 1 - beta2)) },
    };
  }
}
