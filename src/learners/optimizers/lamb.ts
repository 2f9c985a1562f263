/** @file Lamb (You et al., 2020) and Lars (You et al., 2017): steps in proportion to the norm of each variable. */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { normOf } from '../transforms/clipping.js';
import { Adam } from './adam.js';
import { BaseOptimizer } from './optimizer.js';
import type { Direction, RuleInputs } from './rule.js';
import { type SlotSpecs, type SlotVariable, slotLike } from './slots.js';
import type { VariableGroup } from './variableGroup.js';

const weightDecay = z
  .number()
  .nonnegative()
  .default(0)
  .describe('Adds this much of the variable to the direction, before the ratio of norms.');

/** `direction` with this much of the parameters, where the group decays. */
function decayed(direction: Tensor, { param, variables }: RuleInputs, weight: number): Tensor {
  return weight > 0 && variables.decays ? tf.add(direction, tf.mul(param, weight)) : direction;
}

/** Each variable's direction times coefficient |param| / |direction|, as it is where either is 0 (optax.scale_by_trust_ratio). */
function byTrustRatio(
  direction: Tensor,
  param: Tensor,
  variables: VariableGroup,
  { coefficient = 1, epsilon = 0 } = {},
): Tensor {
  const ratioOf = (direction: Tensor, _: number, param: Tensor | undefined): Tensor => {
    const [length, size] = [normOf(param!, variables), normOf(direction, variables)];
    const isZero = tf.logicalOr(tf.equal(length, 0), tf.equal(size, 0));
    const ratio = tf.mul(tf.div(length, tf.add(size, epsilon)), coefficient);
    return tf.where(isZero, tf.onesLike(ratio), ratio);
  };
  return variables.scaleEach(direction, ratioOf, param);
}

/**
 * Lamb as optax and Pax have it: the direction of Adam, with `weightDecay` of the parameters, times the norm of the variable
 * over that of its direction.
 */
export class Lamb extends Adam.with({
  weightDecay,
  clipThreshold: z
    .number()
    .nonnegative()
    .default(0)
    .describe("Largest root mean square of one variable's update before the ratio; 0 does not limit."),
}) {
  protected override direction(inputs: RuleInputs): Direction {
    const { direction, slots } = super.direction(inputs);
    const whole = decayed(direction, inputs, this.hp.weightDecay);
    return { direction: byTrustRatio(whole, inputs.param, inputs.variables), slots };
  }
}

/**
 * Lars as optax and Pax have it. With c = `trustCoefficient`, and the momentum behind the learning rate:
 *
 *     u = g + weightDecay p
 *     m = momentum m + lr c |p| / (|u| + epsilon) u          p -= m, or in Nesterov's form the same with the new m for the old
 */
export class Lars extends BaseOptimizer.with({
  weightDecay,
  trustCoefficient: z.number().positive().default(0.001).describe('Factor of the ratio of norms.'),
  epsilon: z.number().nonnegative().default(0).describe('Added to the norm that is divided by.'),
  momentum: z.number().min(0).lt(1).default(0.9).describe('Part of the last update that is kept.'),
  nesterov: z.boolean().default(false).describe("Nesterov's form of momentum."),
}) {
  slotSpecs(variable: SlotVariable): SlotSpecs {
    return { m: slotLike(variable) };
  }

  protected direction(inputs: RuleInputs): Direction {
    const { weightDecay, trustCoefficient: coefficient, epsilon, momentum, nesterov } = this.hp;
    const { grad, param, slots, scalars, variables } = inputs;
    const whole = decayed(grad, inputs, weightDecay);
    const scaled = byTrustRatio(whole, param, variables, { coefficient, epsilon });
    const step = tf.mul(scaled, scalars.learningRate!);
    const m = tf.add(tf.mul(slots.m!, momentum), step);
    return { direction: nesterov ? tf.add(tf.mul(m, momentum), step) : m, slots: { m } };
  }

  /** The direction has the learning rate in it, as the momentum has. */
  protected override stepAlong(direction: Tensor): Tensor {
    return direction;
  }
}
