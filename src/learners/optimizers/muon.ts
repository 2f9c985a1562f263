/** @file Muon: steps of matrices made orthogonal (Jordan et al., 2024). */
import { z } from 'zod';
import { PRECISION_NAMES, sizeOf, type Tensor, tf, withPrecision } from '../../compiler/index.js';
import { Adam } from './adam.js';
import type { Direction, RuleInputs } from './rule.js';
import { type SlotSpecs, type SlotVariable, slotLike } from './slots.js';

/** Coefficients of a step of Newton and Schulz, by Jordan: fast, to singular values around 1. */
const [A, B, C] = [3.4445, -4.775, 2.0315];

/**
 * Muon. Of matrices, and of variables with more dimensions as matrices of the first one by the others:
 *
 *     m = momentum m + g                        u = g + momentum m (nesterov), else m
 *     direction = s · the orthogonal matrix nearest to u, about, by `newtonSchulzSteps` steps
 *
 * with s = sqrt(max(1, columns / rows)) (`scale: 'shape'`, Jordan, whose matrices have outputs for rows), or 0.2 sqrt(max(rows, columns)) (`scale: 'adam'`; Liu et
 * al., 2025), which lets Muon take the learning rate and weight decay of AdamW. Scalars and vectors take Adam's rule with the fields
 * of that. Embeddings and the softmax should have AdamW: `MultiOptimizerLearner` gives it to them by pattern.
 */
export class Muon extends Adam.with({
  momentum: z.number().min(0).lt(1).default(0.95).describe('Part of the sum of gradients that is kept.'),
  nesterov: z.boolean().default(true).describe("Nesterov's form of momentum."),
  newtonSchulzSteps: z.int().positive().default(5).describe('Steps of the iteration of Newton and Schulz.'),
  newtonSchulzDtype: z
    .enum(PRECISION_NAMES)
    .default('float32')
    .describe(
      'To what the products of that iteration round their operands; their sums are float32. Jordan and torch.optim.Muon take bfloat16.',
    ),
  scale: z.enum(['shape', 'adam']).default('adam').describe('Factor of the orthogonal matrix.'),
  clipThreshold: z
    .number()
    .nonnegative()
    .default(0)
    .describe("Largest root mean square of a vector's update before the learning rate; 0 does not limit."),
}) {
  override get isPerVariable(): boolean {
    return true;
  }

  override slotSpecs(variable: SlotVariable): SlotSpecs {
    if (variable.shape.length < 2) return super.slotSpecs(variable);
    return { m: slotLike(variable, 0, this.hp.muDtype) };
  }

  protected override direction(inputs: RuleInputs): Direction {
    const { grad, slots } = inputs;
    if (grad.rank < 2) return super.direction(inputs);
    const { momentum, nesterov, newtonSchulzSteps, newtonSchulzDtype, scale } = this.hp;
    const m = tf.add(tf.mul(slots.m!, momentum), grad);
    const update = nesterov ? tf.add(grad, tf.mul(m, momentum)) : m;
    const rows = grad.shape[0]!;
    const columns = sizeOf(grad.shape.slice(1));
    const factor =
      scale === 'shape' ? Math.sqrt(Math.max(1, columns / rows)) : 0.2 * Math.sqrt(Math.max(rows, columns));
    const near = withPrecision(newtonSchulzDtype, () =>
      orthogonalized(tf.reshape(update, [rows, columns]), newtonSchulzSteps),
    );
    return { direction: tf.mul(tf.reshape(near, grad.shape), factor), slots: { m } };
  }
}

/** About the orthogonal matrix nearest to a matrix: its singular values become 0.7 to 1.2, and 0 stays 0. */
function orthogonalized(matrix: Tensor, steps: number): Tensor {
  const [rows, columns] = matrix.shape as [number, number];
  const isTall = rows > columns;
  let x = isTall ? tf.transpose(matrix) : matrix;
  x = tf.div(x, tf.add(tf.sqrt(tf.sum(tf.square(x))), 1e-7));
  for (let i = 0; i < steps; i++) {
    const gram = tf.matMul(x, x, false, true);
    const polynomial = tf.add(tf.mul(gram, B), tf.mul(tf.matMul(gram, gram), C));
    x = tf.add(tf.mul(x, A), tf.matMul(polynomial, x));
  }
  return isTall ? tf.transpose(x) : x;
}
