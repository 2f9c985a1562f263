/** @file SM3: Adagrad whose sums take the memory of a vector for each dimension (Anil et al., 2019). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { BaseOptimizer } from './optimizer.js';
import type { Direction, RuleInputs } from './rule.js';
import { type SlotSpecs, type SlotVariable, slotLike } from './slots.js';

/**
 * SM3-II. Of each dimension i there is a vector s_i, of which element j covers the slice at j:
 *
 *     v = min over i of s_i, broadcast, + g²
 *     s_i = max of v over all dimensions but i
 *     m = momentum m + (1 - momentum) g / sqrt(v)          direction = m
 *
 * Elements that never had a gradient do not move. The slots are `s0`, `s1`, …, and `m` only with momentum.
 */
export class Sm3 extends BaseOptimizer.with({
  momentum: z.number().min(0).lt(1).default(0.9).describe('Decay of the mean of directions; 0 for none.'),
}) {
  override get isPerVariable(): boolean {
    return true;
  }

  slotSpecs(variable: SlotVariable): SlotSpecs {
    const sums = dimsOf(variable.shape).map((dim, i) => [`s${i}`, { shape: [dim] }]);
    return { ...Object.fromEntries(sums), ...(this.hp.momentum > 0 && { m: slotLike(variable) }) };
  }

  protected direction({ grad, slots }: RuleInputs): Direction {
    const { momentum } = this.hp;
    const dims = dimsOf(grad.shape);
    const along = (i: number): number[] => dims.map((dim, axis) => (axis === i ? dim : 1));
    const sums = dims.map((_, i) => tf.reshape(slots[`s${i}`]!, along(i)));
    const least = sums.reduce((a, b) => tf.minimum(a, b));
    const v = tf.add(least, tf.square(tf.reshape(grad, dims)));
    const next: Record<string, Tensor> = Object.fromEntries(
      dims.map((_, i) => [
        `s${i}`,
        tf.max(
          v,
          dims.flatMap((_, axis) => (axis === i ? [] : [axis])),
        ),
      ]),
    );
    const root = tf.reshape(tf.sqrt(v), grad.shape);
    const isMoved = tf.greater(root, 0);
    const scaled = tf.where(
      isMoved,
      tf.div(grad, tf.where(isMoved, root, tf.onesLike(root))),
      tf.zerosLike(grad),
    );
    if (momentum === 0) return { direction: scaled, slots: next };
    const m = tf.add(tf.mul(slots.m!, momentum), tf.mul(scaled, 1 - momentum));
    return { direction: m, slots: { ...next, m } };
  }
}

/** A scalar is a vector of one. */
const dimsOf = (shape: readonly number[]): number[] => (shape.length === 0 ? [1] : [...shape]);
