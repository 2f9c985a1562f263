/** @file SOAP: Adam in the eigenbasis of Shampoo's preconditioner (Vyas et al., 2024). */
import { z } from 'zod';
import { ops, sizeOf, type Tensor, tf } from '../../compiler/index.js';
import { BaseOptimizer } from './optimizer.js';
import { eigenvectors, orthogonalFactor } from './orthogonalBases.js';
import type { Direction, NamedTensors, RuleInputs } from './rule.js';
import { type SlotSpecs, type SlotVariable, slotLike, squaresLike } from './slots.js';

const beta = z.number().min(0).lt(1);

/** A dimension with a basis of its own, and the names of its slots. */
interface Side {
  readonly axis: number;
  readonly size: number;
  readonly statistics: string;
  readonly basis: string;
}

/**
 * SOAP as the authors' code has it. Of a matrix G at step t, from 1:
 *
 *     G' = Q_Lᵗ G Q_R        m = beta1 m + (1 - beta1) G        m' = Q_Lᵗ m Q_R        v = beta2 v + (1 - beta2) G'²
 *     direction = Q_L (m' / (sqrt(v) + epsilon)) Q_Rᵗ · sqrt(1 - beta2^t) / (1 - beta1^t)
 *     L = b L + (1 - b) G Gᵗ                    R = b R + (1 - b) Gᵗ G                  b = shampooBeta
 *     Q_L = the Q of QR of L Q_L, Q_R that of R Q_R                                    each `preconditionFrequency` steps
 *
 * with the columns of Q, and v, in the order of the eigenvalues. The first step of a variable moves nothing: its gradient gives L
 * and R, and their eigenvectors Q_L and Q_R, for no step is to be turned by its own gradient. A tensor with more dimensions has a
 * basis for each; a vector, and a dimension larger than `maxPreconditionDim`, none.
 */
export class Soap extends BaseOptimizer.with({
  beta1: beta.default(0.95).describe('Decay of the mean of gradients.'),
  beta2: beta.default(0.95).describe('Decay of the mean of squares of turned gradients.'),
  shampooBeta: z
    .number()
    .min(-1)
    .lt(1)
    .default(-1)
    .describe('Decay of the statistics of each dimension; below 0, beta2.'),
  epsilon: z.number().positive().default(1e-8).describe('Added to the denominator.'),
  preconditionFrequency: z.int().positive().default(10).describe('Steps from bases to the next.'),
  maxPreconditionDim: z
    .int()
    .positive()
    .default(10000)
    .describe('Largest dimension that has a basis. Two matrices of its size are kept.'),
  mergeDims: z
    .boolean()
    .default(false)
    .describe('Whether neighbouring dimensions whose product is at most maxPreconditionDim are one.'),
  precondition1d: z.boolean().default(false).describe('Whether vectors have a basis.'),
  normalizeGrads: z
    .boolean()
    .default(false)
    .describe('Whether the direction of each variable has a root mean square of 1.'),
  correctBias: z.boolean().default(true).describe('Whether means count as if they had not begun at 0.'),
}) {
  override get isPerVariable(): boolean {
    return true;
  }

  slotSpecs(variable: SlotVariable): SlotSpecs {
    const matrices = this.sidesOf(this.merged(variable.shape)).flatMap(({ size, statistics, basis }) =>
      [statistics, basis].map((name) => [name, { shape: [size, size] }]),
    );
    return { m: slotLike(variable), v: squaresLike(variable), ...Object.fromEntries(matrices) };
  }

  protected override scalarsAt(step: number): Record<string, number> {
    const { beta1, beta2, correctBias, preconditionFrequency } = this.hp;
    const unbias = correctBias && step > 0 ? Math.sqrt(1 - beta2 ** step) / (1 - beta1 ** step) : 1;
    return {
      unbias,
      isFirst: step === 0 ? 1 : 0,
      takesBases: step > 0 && step % preconditionFrequency === 0 ? 1 : 0,
    };
  }

  protected direction({ grad: given, slots, scalars }: RuleInputs): Direction {
    const { beta1, beta2, epsilon, normalizeGrads } = this.hp;
    const shape = this.merged(given.shape);
    const sides = this.sidesOf(shape);
    const as = (x: Tensor, dims: readonly number[]): Tensor => tf.reshape(x, [...dims]);
    const [grad, before] = [as(given, shape), { m: as(slots.m!, shape), v: as(slots.v!, shape) }];
    const bases = (of: NamedTensors) => shape.map((_, axis) => of[basisOf(axis)]);

    const turned = inBases(grad, bases(slots), true);
    const m = tf.add(tf.mul(before.m, beta1), tf.mul(grad, 1 - beta1)) as Tensor;
    const v = tf.add(tf.mul(before.v, beta2), tf.mul(tf.square(turned), 1 - beta2)) as Tensor;
    const step = tf.div(inBases(m, bases(slots), true), tf.add(tf.sqrt(v), epsilon)) as Tensor;
    const back = inBases(step, bases(slots), false);
    const size = tf.add(tf.sqrt(tf.mean(tf.square(back))), epsilon);
    const direction = tf.mul(normalizeGrads ? tf.div(back, size) : back, scalars.unbias!);

    const isFirst = this.isFirst(sides, slots, scalars);
    const moving = (after: Tensor, at: Tensor): Tensor => tf.where(isFirst, at, after) as Tensor;
    const { v: ordered, ...matrices } = this.bases(grad, moving(v, before.v), sides, slots, {
      isFirst,
      takesBases: tf.greater(scalars.takesBases!, 0) as Tensor,
    });
    return {
      direction: as(moving(direction as Tensor, tf.zerosLike(direction)), given.shape),
      slots: { m: as(moving(m, before.m), given.shape), v: as(ordered!, given.shape), ...matrices },
    };
  }

  /** Whether a variable has no bases yet; of one that never has any, whether it is the first step. */
  private isFirst([side]: readonly Side[], slots: NamedTensors, { isFirst }: NamedTensors): Tensor {
    if (side === undefined) return tf.greater(isFirst!, 0) as Tensor;
    return tf.logicalNot(tf.any(tf.notEqual(slots[side.basis]!, 0))) as Tensor;
  }

  /** Statistics and bases after a step, and v in the order of their vectors. */
  private bases(
    grad: Tensor,
    v: Tensor,
    sides: readonly Side[],
    slots: NamedTensors,
    { isFirst, takesBases }: { readonly isFirst: Tensor; readonly takesBases: Tensor },
  ): Record<string, Tensor> {
    if (sides.length === 0) return { v };
    const { shampooBeta, beta2 } = this.hp;
    const decay = shampooBeta < 0 ? beta2 : shampooBeta;
    const statistics = Object.fromEntries(
      sides.map(({ axis, statistics }) => {
        const added = tf.mul(squaredAlong(grad, axis), 1 - decay);
        return [statistics, tf.add(tf.mul(slots[statistics]!, decay), added) as Tensor];
      }),
    );
    const before = Object.fromEntries(sides.map(({ basis }) => [basis, slots[basis]!]));
    type State = Record<string, Tensor>;
    const first = (state: State): State => ({
      ...state,
      ...Object.fromEntries(sides.map(({ statistics, basis }) => [basis, eigenvectors(state[statistics]!)])),
    });
    const later = (state: State): State => {
      const next = { ...state };
      for (const { axis, size, statistics, basis } of sides) {
        const old = next[basis]!;
        const product = tf.matMul(next[statistics]!, old);
        const values = tf.sum(tf.mul(old, product), 0) as Tensor<tf.Rank.R1>;
        const { indices } = tf.topk(values, size);
        next.v = tf.gather(next.v!, indices, axis) as Tensor;
        next[basis] = orthogonalFactor(tf.gather(product, indices, 1) as Tensor);
      }
      return next;
    };
    return ops.cond(isFirst, first, (state) => ops.cond(takesBases, later, (same: State) => same, state), {
      v,
      ...statistics,
      ...before,
    });
  }

  /** The dimensions that bases turn: a variable's own, or with neighbours merged. */
  private merged(shape: readonly number[]): readonly number[] {
    const { mergeDims, maxPreconditionDim } = this.hp;
    if (!mergeDims) return shape;
    const dims = [1];
    for (const dim of shape)
      if (dims.at(-1)! * dim > maxPreconditionDim) dims.push(dim);
      else dims.push(dims.pop()! * dim);
    return dims;
  }

  private sidesOf(shape: readonly number[]): Side[] {
    const { maxPreconditionDim, precondition1d } = this.hp;
    if (shape.length === 1 && !precondition1d) return [];
    return shape.flatMap((size, axis) =>
      size > maxPreconditionDim
        ? []
        : [{ axis, size, statistics: `statistics${axis}`, basis: basisOf(axis) }],
    );
  }
}

const basisOf = (axis: number): string => `basis${axis}`;

/** A tensor turned into the bases of its dimensions, or back. @param bases [n, n] for a dimension of n, or none */
function inBases(x: Tensor, bases: readonly (Tensor | undefined)[], isInto: boolean): Tensor {
  // The first dimension goes to the end each time, so that after all of them they are in order again.
  return bases.reduce<Tensor>((each, basis) => {
    const [n = 1, ...others] = each.shape;
    const flat = tf.reshape(each, [n, sizeOf(others)]);
    const turned = basis === undefined ? tf.transpose(flat) : tf.matMul(flat, basis, true, !isInto);
    return tf.reshape(turned, [...others, n]);
  }, x);
}

/** Products of all pairs of slices along a dimension, [n, n]. */
function squaredAlong(x: Tensor, axis: number): Tensor {
  const n = x.shape[axis]!;
  const [before, behind] = [sizeOf(x.shape.slice(0, axis)), sizeOf(x.shape.slice(axis + 1))];
  if (behind === 1) {
    const flat = tf.reshape(x, [before, n]);
    return tf.matMul(flat, flat, true, false);
  }
  const front = before === 1 ? x : tf.transpose(tf.reshape(x, [before, n, behind]), [1, 0, 2]);
  const flat = tf.reshape(front, [n, before * behind]);
  return tf.matMul(flat, flat, false, true);
}
