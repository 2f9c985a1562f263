/** @file Gradient transforms: clipping by the norm of all gradients, or of each. */
import { type Tensor, tf } from '../../compiler/index.js';
import type { VariableGroup } from '../optimizers/variableGroup.js';

/** Gradients of all variables, and their norm together. */
export interface Gradients {
  readonly groups: readonly GroupGradient[];
  /** [] */
  readonly norm: Tensor;
}

/** Gradients of a group of variables. */
export interface GroupGradient {
  readonly variables: VariableGroup;
  /** [size of the group]. A function, so that what it records can be fused with the optimizer's rule. */
  readonly grad: () => Tensor;
}

/** A function from gradients to those that the optimizer sees; several compose. */
export type GradientTransform = (gradients: Gradients) => Gradients;

/** Sum of squares of each row of a matrix, [rows, 1]; of all else together, []. */
const sumOfSquares = (x: Tensor): Tensor =>
  x.rank === 2 ? tf.sum(tf.square(x), -1, true) : tf.sum(tf.square(x));

/** Gradients with their norm. */
export function withNorm(groups: readonly GroupGradient[]): Gradients {
  if (groups.length === 0) return { groups, norm: tf.scalar(0) };
  // Ranks are asked once for all variables that are split alike.
  const alike = new Map<string, GroupGradient[]>();
  for (const group of groups) {
    const key = group.variables.ranks?.axes.join() ?? '';
    alike.set(key, [...(alike.get(key) ?? []), group]);
  }
  const add = (a: Tensor, b: Tensor): Tensor => tf.add(a, b);
  const sums = [...alike.values()].map((members) =>
    members[0]!.variables.total(members.map(({ grad }) => sumOfSquares(grad())).reduce(add)),
  );
  return { groups, norm: tf.sqrt(sums.reduce(add)) };
}

/** Norm of each row of a variable that is a matrix, [rows, 1]; of all else of it together, []. */
export const normOf = (x: Tensor, variables: VariableGroup): Tensor =>
  tf.sqrt(variables.total(sumOfSquares(x)));

/** The factor that brings a norm down to `most`; 1 where it is not above, zero, or not a number. */
export function factorTo(most: number, norm: Tensor): Tensor {
  const factor = tf.div(most, norm);
  return tf.where(tf.less(factor, 1), factor, tf.onesLike(factor));
}

/** Scales all gradients by one factor, so that their norm is at most `most`. */
export const clipByGlobalNorm =
  (most: number): GradientTransform =>
  ({ groups, norm }) => {
    const factor = factorTo(most, norm);
    return {
      groups: groups.map(({ variables, grad }) => ({ variables, grad: () => tf.mul(grad(), factor) })),
      norm: tf.mul(norm, factor),
    };
  };

/** Scales tensors of any shapes by one factor, so that their norm together is at most `most`. */
export const clipEachByGlobalNorm =
  (most: number) =>
  (grads: Readonly<Record<string, Tensor>>): Record<string, Tensor> => {
    const sums = Object.values(grads).map((grad) => tf.sum(tf.square(grad)) as Tensor);
    if (sums.length === 0) return {};
    const factor = factorTo(most, tf.sqrt(sums.reduce((a, b) => tf.add(a, b))));
    return Object.fromEntries(Object.entries(grads).map(([name, grad]) => [name, tf.mul(grad, factor)]));
  };

/** Scales the gradient of each variable, so that its norm is at most `most`. */
export const clipBySingleNorm =
  (most: number): GradientTransform =>
  ({ groups }) =>
    withNorm(
      groups.map(({ variables, grad }) => {
        const clipped = variables.scaleEach(grad(), (one) => factorTo(most, normOf(one, variables)));
        return { variables, grad: () => clipped };
      }),
    );

/** Scales each variable of a flat tensor, so that the root of its mean square is at most `most`. */
export function limitRootMeanSquare(flat: Tensor, variables: VariableGroup, most: number): Tensor {
  return variables.scaleEach(flat, (one, size) =>
    factorTo(most, tf.sqrt(tf.div(variables.total(sumOfSquares(one)), Math.max(1, size)))),
  );
}
