/** @file Stochastic gradient descent with momentum. */
import { z } from 'zod';
import { tf } from '../../compiler/index.js';
import { BaseOptimizer } from './optimizer.js';
import type { Direction, RuleInputs } from './rule.js';
import { type SlotSpecs, type SlotVariable, slotLike } from './slots.js';

/**
 * Gradient descent: `p -= lr * g`. With momentum u, `t = u * t + g` and `p -= lr * t`, or `p -= lr * (g + u * t)` in
 * Nesterov's form, as optax.sgd and torch.optim.SGD have it. Weight decay does not pile up in the momentum.
 */
export class Sgd extends BaseOptimizer.with({
  momentum: z.number().min(0).lt(1).default(0).describe('Part of the last update that is kept; 0 for none.'),
  nesterov: z.boolean().default(false).describe("Nesterov's form of momentum."),
}) {
  override get skipsZeroGradients(): boolean {
    return this.hp.momentum === 0;
  }

  slotSpecs(variable: SlotVariable): SlotSpecs {
    return this.hp.momentum > 0 ? { m: slotLike(variable) } : {};
  }

  protected direction({ grad, slots }: RuleInputs): Direction {
    const { momentum, nesterov } = this.hp;
    if (momentum === 0) return { direction: grad, slots: {} };
    const m = tf.add(tf.mul(slots.m!, momentum), grad);
    return { direction: nesterov ? tf.add(grad, tf.mul(m, momentum)) : m, slots: { m } };
  }
}
