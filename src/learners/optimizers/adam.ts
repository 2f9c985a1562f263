/** @file Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019). */
import { z } from 'zod';
import { tf } from '../../compiler/index.js';
import { limitRootMeanSquare } from '../transforms/clipping.js';
import { BaseOptimizer } from './optimizer.js';
import type { Direction, RuleInputs } from './rule.js';
import { type SlotSpecs, type SlotVariable, slotLike, squaresLike } from './slots.js';

const beta = z.number().min(0).lt(1);

/**
 * Adam with Pax's defaults. With t = step + 1:
 *
 *     m = beta1 m + (1 - beta1) g              m' = m / (1 - beta1^t)
 *     v = beta2 v + (1 - beta2) g²             v' = v / (1 - beta2^t)
 *     direction = m' / (sqrt(v' + epsilonRoot) + epsilon)
 *
 * Pax then limits the root mean square of each variable's direction to `clipThreshold`. The slots hold m and v as torch and
 * optax do, not corrected. A step computes with m before that is rounded to `muDtype`.
 *
 * `lazyUpdate` is for large embeddings, of which a step looks up a few rows: it takes as long as these, as torch.optim.SparseAdam
 * and the LazyAdam of TensorFlow Addons do. Means of a row do not decay while nothing looks it up; t counts all steps.
 */
export class Adam extends BaseOptimizer.with(
  {
    beta1: beta.default(0.9).describe('Decay of the mean of gradients.'),
    beta2: beta.default(0.999).describe('Decay of the mean of squared gradients.'),
    epsilon: z.number().nonnegative().default(1e-6).describe('Added to the denominator outside of the root.'),
    epsilonRoot: z.number().nonnegative().default(0).describe('Added to the denominator inside of the root.'),
    muDtype: z
      .enum(['float32', 'bfloat16'])
      .default('float32')
      .describe("Storage of the mean of gradients, as optax's mu_dtype; bfloat16 takes half the memory."),
    clipThreshold: z
      .number()
      .nonnegative()
      .default(1)
      .describe(
        "Largest root mean square of one variable's update before the learning rate; 0 does not limit.",
      ),
    lazyUpdate: z
      .boolean()
      .default(false)
      .describe(
        'Leaves rows of matrices whose gradient is 0 as they are, means and all; weight decay reaches the other rows alone.',
      ),
  },
  (schema) =>
    // Elements without a gradient, padding among them, would become 0 / 0.
    schema.refine(({ epsilon, epsilonRoot }) => epsilon > 0 || epsilonRoot > 0, {
      error: 'epsilon and epsilonRoot must not both be 0',
    }),
) {
  override get isLazy(): boolean {
    return this.hp.lazyUpdate;
  }

  slotSpecs(variable: SlotVariable): SlotSpecs {
    return { m: slotLike(variable, 0, this.hp.muDtype), v: squaresLike(variable) };
  }

  protected override scalarsAt(step: number): Record<string, number> {
    const { beta1, beta2 } = this.hp;
    return { unbiasM: 1 / (1 - beta1 ** (step + 1)), unbiasV: 1 / (1 - beta2 ** (step + 1)) };
  }

  protected direction({ grad, slots, scalars, variables, touched }: RuleInputs): Direction {
    const { unbiasM, unbiasV } = scalars;
    const { beta1, beta2, epsilon, epsilonRoot, clipThreshold } = this.hp;
    const m = tf.add(tf.mul(slots.m!, beta1), tf.mul(grad, 1 - beta1));
    const v = tf.add(tf.mul(slots.v!, beta2), tf.mul(tf.square(grad), 1 - beta2));
    const root = tf.sqrt(tf.add(tf.mul(v, unbiasV!), epsilonRoot));
    const ofAll = tf.div(tf.mul(m, unbiasM!), tf.add(root, epsilon));
    const direction = touched === undefined ? ofAll : tf.where(touched, ofAll, tf.zerosLike(ofAll));
    const limited = clipThreshold > 0 ? limitRootMeanSquare(direction, variables, clipThreshold) : direction;
    return { direction: limited, slots: { m, v } };
  }
}

/** torch.optim.AdamW: Adam with torch's defaults and decoupled weight decay, without a limit on updates. */
export class AdamW extends Adam.with({
  epsilon: z.number().nonnegative().default(1e-8).describe('Added to the denominator outside of the root.'),
  clipThreshold: z
    .number()
    .nonnegative()
    .default(0)
    .describe(
      "Largest root mean square of one variable's update before the learning rate; 0 does not limit.",
    ),
  decoupledWeightDecay: z
    .number()
    .nonnegative()
    .default(0.01)
    .describe('Shrinks variables by learning rate times this, beside the gradient step.'),
}) {}
