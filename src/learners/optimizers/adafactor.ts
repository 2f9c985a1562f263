/** @file Adafactor (Shazeer and Stern, 2018), in the shape of Pax's ShardedAdafactor. */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { wholePath } from '../pathPattern.js';
import { BaseOptimizer } from './optimizer.js';
import type { Direction, NamedTensors, RuleInputs } from './rule.js';
import { type SlotSpecs, type SlotVariable, slotLike, squaresLike } from './slots.js';

/** Buckets of an int8 on each side of 0. */
const BUCKETS = 127;

const meanOf = (x: Tensor, axis: number): Tensor => tf.mean(x, axis, true);

const rootMeanSquare = (x: Tensor): Tensor => tf.sqrt(tf.mean(tf.square(x)));

/**
 * Adafactor. Of a matrix it keeps the means over rows and over columns of the squared gradient, in place of one number an
 * element. With s = g² + epsilon1GradSqReg and the decay rate d:
 *
 *     vr = d vr + (1 - d) mean(s over columns)      vc = d vc + (1 - d) mean(s over rows)
 *     x = g / sqrt(vr / mean(vr)) / sqrt(vc)        not factored: v = d v + (1 - d) s, x = g / sqrt(v)
 *     x = x / max(1, rms(x) / clippingThreshold)
 *     u = scale · x, scale = learning rate · max(rms(p), epsilon2ParamScaleReg)     the maximum with multiplyByParameterScale alone
 *     m = beta1 m + (1 - beta1) u, p = p - m                                      without momentum p = p - u
 *
 * Behind the momentum, `weightDecay` adds learning rate · weightDecay · p to the step, and `layerwiseAdaptation` multiplies it by
 * rms(p) / (rms(step / scale) + epsilon1GradSqReg), where p is not all 0.
 *
 * d is decayAdam (1 - decayAdam^(t-1)) / (1 - decayAdam^t), or 1 - t^-decayPow, with t = step + 1. The matrix is that of
 * the last two dimensions, or of the two largest; dimensions before them are kept. The mean m, which has the learning rate
 * in it, is an int8 for each element, with a scale for each element of the first dimension's slices.
 */
export class Adafactor extends BaseOptimizer.with(
  {
    decayMethod: z
      .enum(['adam', 'pow'])
      .default('adam')
      .describe('How the decay of the mean of squared gradients follows the step.'),
    decayAdam: z.number().min(0).lt(1).default(0.99).describe("Its limit, with decayMethod 'adam'."),
    decayPow: z.number().nonnegative().default(0.8).describe("Its exponent, with decayMethod 'pow'."),
    beta1: z.number().min(0).lt(1).default(0).describe('Decay of the mean of updates; 0 keeps none.'),
    nesterov: z.boolean().default(false).describe("Nesterov's form of the mean of updates."),
    quantizedDtype: z
      .enum(['int8', 'bfloat16', 'float32'])
      .default('int8')
      .describe('Storage of the mean of updates.'),
    clippingThreshold: z
      .number()
      .nonnegative()
      .default(1)
      .describe(
        "Largest root mean square of one variable's update before the learning rate; 0 does not limit.",
      ),
    factored: z
      .boolean()
      .default(true)
      .describe('Whether the mean of squared gradients of matrices is factored.'),
    minDimSizeToFactor: z
      .int()
      .positive()
      .default(128)
      .describe('Smallest size of both dimensions of a matrix that is factored.'),
    sortFactoredSecondMomentDims: z
      .boolean()
      .default(false)
      .describe('Factors the two largest dimensions, not the last two.'),
    multiplyByParameterScale: z
      .boolean()
      .default(false)
      .describe('Whether the learning rate is relative to the root mean square of the variable.'),
    epsilon1GradSqReg: z.number().nonnegative().default(1e-30).describe('Added to squared gradients.'),
    epsilon2ParamScaleReg: z
      .number()
      .nonnegative()
      .default(1e-3)
      .describe('Smallest root mean square that a variable counts with.'),
    weightDecay: z
      .number()
      .nonnegative()
      .default(0)
      .describe(
        'Adds learning rate times this much of the variable to its step, before layerwiseAdaptation.',
      ),
    layerwiseAdaptation: z
      .boolean()
      .default(false)
      .describe('Whether steps are in proportion to the root mean square of the variable, as in Lamb.'),
    excludeFromLayerwiseAdaptation: z
      .array(z.string())
      .default(() => [])
      .describe('Regular expressions of whole paths of variables that layerwiseAdaptation leaves.'),
  },
  (schema) =>
    // Elements without a gradient would become 0 / 0.
    schema.refine(({ epsilon1GradSqReg }) => Math.fround(epsilon1GradSqReg) > 0, {
      error: 'epsilon1GradSqReg must be above 0 in float32',
    }),
) {
  override get isPerVariable(): boolean {
    return true;
  }

  slotSpecs(variable: SlotVariable): SlotSpecs {
    const { shape } = variable;
    const { beta1, quantizedDtype } = this.hp;
    const matrix = this.factoredDims(shape);
    const isQuantized = beta1 > 0 && quantizedDtype === 'int8' && shape.length > 0;
    const dtype = quantizedDtype === 'bfloat16' ? 'bfloat16' : 'float32';
    return {
      ...(matrix
        ? { vr: { shape: without(shape, matrix.column) }, vc: { shape: without(shape, matrix.row) } }
        : { v: squaresLike(variable) }),
      ...(isQuantized && { mInt8: { shape, dtype: 'int8' }, mScale: { shape: shape.slice(1) } }),
      ...(beta1 > 0 && !isQuantized && { m: slotLike(variable, 0, dtype) }),
    };
  }

  protected override scalarsAt(step: number): Record<string, number> {
    const { decayMethod, decayAdam, decayPow } = this.hp;
    const t = step + 1;
    const decay =
      decayMethod === 'pow'
        ? 1 - t ** -decayPow
        : (decayAdam * (1 - decayAdam ** (t - 1))) / (1 - decayAdam ** t);
    return { decay, mixing: 1 - decay };
  }

  protected direction(inputs: RuleInputs): Direction {
    const { param, scalars } = inputs;
    const { clippingThreshold, multiplyByParameterScale, beta1, nesterov } = this.hp;
    let { direction, slots } = this.scaled(inputs);
    if (clippingThreshold > 0)
      direction = tf.div(direction, tf.maximum(1, tf.div(rootMeanSquare(direction), clippingThreshold)));
    if (multiplyByParameterScale) direction = tf.mul(direction, this.parameterScale(param));
    let step = tf.mul(direction, scalars.learningRate!);
    if (beta1 > 0) {
      const mean = tf.add(tf.mul(this.meanBefore(inputs.slots), beta1), tf.mul(step, 1 - beta1));
      slots = { ...slots, ...this.meanSlots(inputs.slots, mean) };
      step = nesterov ? tf.add(tf.mul(mean, beta1), tf.mul(step, 1 - beta1)) : mean;
    }
    return { direction: this.adapted(step, inputs), slots };
  }

  private parameterScale(param: Tensor): Tensor {
    return tf.maximum(rootMeanSquare(param), this.hp.epsilon2ParamScaleReg);
  }

  /** The step with weight decay, in proportion to the variable where it is adapted. */
  private adapted(step: Tensor, { param, scalars, variables }: RuleInputs): Tensor {
    const { weightDecay, epsilon1GradSqReg, layerwiseAdaptation, excludeFromLayerwiseAdaptation } = this.hp;
    const rate = scalars.learningRate!;
    const whole =
      weightDecay > 0 && variables.decays ? tf.add(step, tf.mul(param, tf.mul(rate, weightDecay))) : step;
    const path = variables.entries[0]!.name;
    if (!layerwiseAdaptation || excludeFromLayerwiseAdaptation.some((each) => wholePath(each).test(path)))
      return whole;
    const size = rootMeanSquare(param);
    const scale = this.hp.multiplyByParameterScale ? tf.mul(rate, this.parameterScale(param)) : rate;
    const ratio = tf.div(size, tf.add(rootMeanSquare(tf.div(whole, scale)), epsilon1GradSqReg));
    return tf.mul(whole, tf.where(tf.greater(size, 0), ratio, tf.onesLike(ratio)));
  }

  /** The direction of `direction` has the learning rate in it, as the mean of updates has. */
  protected override stepAlong(direction: Tensor): Tensor {
    return direction;
  }

  /** The gradient over the root of the mean of its square, and that mean after the step. */
  private scaled({ grad, slots, scalars }: RuleInputs): Direction {
    const squared = tf.add(tf.square(grad), this.hp.epsilon1GradSqReg);
    const mixed = (old: Tensor, value: Tensor): Tensor =>
      tf.add(tf.mul(old, scalars.decay!), tf.mul(value, scalars.mixing!));
    const matrix = this.factoredDims(grad.shape);
    if (matrix === undefined) {
      const v = mixed(slots.v!, squared);
      return { direction: tf.div(grad, tf.sqrt(v)), slots: { v } };
    }
    const { row, column } = matrix;
    // With the dimension of which they are means, of size 1.
    const vr = mixed(tf.expandDims(slots.vr!, column), meanOf(squared, column));
    const vc = mixed(tf.expandDims(slots.vc!, row), meanOf(squared, row));
    const rowFactor = tf.rsqrt(tf.div(vr, meanOf(vr, row)));
    const direction = tf.mul(tf.mul(grad, rowFactor), tf.rsqrt(vc));
    return { direction, slots: { vr: tf.squeeze(vr, [column]), vc: tf.squeeze(vc, [row]) } };
  }

  /** The dimensions of the matrix that is factored, if any. */
  private factoredDims(shape: readonly number[]): { row: number; column: number } | undefined {
    const { factored, minDimSizeToFactor, sortFactoredSecondMomentDims } = this.hp;
    if (!factored || shape.length < 2) return undefined;
    const dims = [...shape.keys()];
    if (sortFactoredSecondMomentDims) dims.sort((a, b) => shape[b]! - shape[a]! || a - b);
    else dims.reverse();
    const [column, row] = dims as [number, number];
    return Math.min(shape[row]!, shape[column]!) < minDimSizeToFactor ? undefined : { row, column };
  }

  private meanBefore({ m, mInt8, mScale }: NamedTensors): Tensor {
    return m ?? tf.mul(mInt8!, tf.expandDims(mScale!, 0));
  }

  private meanSlots({ m }: NamedTensors, mean: Tensor): NamedTensors {
    if (m !== undefined) return { m: mean };
    const mScale = tf.div(tf.max(tf.abs(mean), 0), BUCKETS);
    const nonzero = tf.where(tf.greater(mScale, 0), mScale, tf.onesLike(mScale));
    return { mInt8: tf.div(mean, tf.expandDims(nonzero, 0)), mScale };
  }
}

const without = (shape: readonly number[], dim: number): number[] => shape.filter((_, i) => i !== dim);
