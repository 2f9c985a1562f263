/** @file Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { BaseOptimizer, type Direction, type NamedTensors, type StepContext } from './optimizer.js';

const beta = z.number().min(0).lt(1);

/**
 * Adam with Pax's defaults.
 *
 * With t = step + 1, m and v the running means of g and g², m' = m / (1 - beta1^t) and v' = v / (1 - beta2^t), the update is
 * `-lr * m' / (sqrt(v' + epsilonRoot) + epsilon)`, before which Pax limits the root mean square of each variable's update to
 * `clipThreshold`. The slots hold m and v as torch and optax do, not corrected.
 *
 * Numerator and denominator are both multiplied by sqrt(1 - beta2^t) here, so that the corrections sit in scalars: with
 * d = sqrt(v + epsilonRoot * (1 - beta2^t)) + epsilon * sqrt(1 - beta2^t) the update is -rate * m / d.
 */
export class Adam extends BaseOptimizer.with(
  {
    beta1: beta.default(0.9).describe('Decay of the mean of gradients.'),
    beta2: beta.default(0.999).describe('Decay of the mean of squared gradients.'),
    epsilon: z.number().nonnegative().default(1e-6).describe('Added to the denominator outside of the root.'),
    epsilonRoot: z.number().nonnegative().default(0).describe('Added to the denominator inside of the root.'),
    clipThreshold: z
      .number()
      .nonnegative()
      .default(1)
      .describe(
        "Largest root mean square of one variable's update before the learning rate; 0 does not limit.",
      ),
  },
  (schema) =>
    // Elements without a gradient, padding among them, would become 0 / 0.
    schema.refine(({ epsilon, epsilonRoot }) => epsilon > 0 || epsilonRoot > 0, {
      error: 'epsilon and epsilonRoot must not both be 0',
    }),
) {
  get slotNames(): readonly string[] {
    return ['m', 'v'];
  }

  override get boundsDirection(): boolean {
    return this.hp.clipThreshold > 0;
  }

  override directionRmsBound(context: StepContext): number {
    return this.boundsDirection ? this.hp.clipThreshold / this.correction(context) : Number.POSITIVE_INFINITY;
  }

  protected directionScalars({ step, gradScale }: StepContext): Record<string, number> {
    const { beta1, beta2, epsilon, epsilonRoot } = this.hp;
    const correction2 = 1 - beta2 ** (step + 1);
    return {
      gradToM: gradScale * (1 - beta1),
      // Squared after scaling: the square of a gradient that clipping is about to save must not overflow.
      gradToRootV: gradScale * Math.sqrt(1 - beta2),
      epsilon: epsilon * Math.sqrt(correction2),
      ...(epsilonRoot > 0 ? { epsilonRoot: epsilonRoot * correction2 } : {}),
    };
  }

  protected directionRate(context: StepContext): number {
    return context.learningRate * this.correction(context);
  }

  protected direction(grad: Tensor, slots: NamedTensors, scalars: NamedTensors): Direction {
    const m = tf.add(tf.mul(slots.m!, this.hp.beta1), tf.mul(grad, scalars.gradToM!));
    const rootV = tf.mul(grad, scalars.gradToRootV!);
    const v = tf.add(tf.mul(slots.v!, this.hp.beta2), tf.mul(rootV, rootV));
    const inRoot = scalars.epsilonRoot === undefined ? v : tf.add(v, scalars.epsilonRoot);
    return { direction: tf.div(m, tf.add(tf.sqrt(inRoot), scalars.epsilon!)), slots: { m, v } };
  }

  /** What turns m / d into the corrected update. */
  private correction({ step }: StepContext): number {
    const { beta1, beta2 } = this.hp;
    return Math.sqrt(1 - beta2 ** (step + 1)) / (1 - beta1 ** (step + 1));
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
