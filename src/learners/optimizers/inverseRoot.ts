/** @file Inverse roots of symmetric matrices by the coupled iteration of Newton (Higham, Functions of Matrices, 2008). */
import { ops, type Tensor, tf } from '../../compiler/index.js';

/** How far from the identity the product of a matrix and its root's power may end. */
const TOLERANCE = 1e-6;
/** An error below which each step makes it smaller. */
const NEAR = 0.01;
const MAX_STEPS = 60;
const POWER_STEPS = 24;

interface Ridge {
  /** Added to the diagonal before the root. */
  readonly epsilon: number;
  /** Whether `epsilon` counts in the largest eigenvalue. */
  readonly isRelative: boolean;
}

/** Entries of the identity, [n, n]. */
const identity = (n: number): Tensor => tf.eye(n) as Tensor;

/** The norm of Frobenius of each matrix, [matrices, 1, 1]. */
const normOf = (matrices: Tensor): Tensor => tf.sqrt(tf.sum(tf.square(matrices), [1, 2], true));

/** About the largest eigenvalue of each matrix, [matrices, 1, 1], by power iteration. */
function largestEigenvalue(matrices: Tensor): Tensor {
  const [count, n] = matrices.shape as [number, number, number];
  // No direction that a matrix may leave out, as it may the constant one.
  const start = tf.tensor3d(
    Array.from({ length: n }, (_, i) => 1 + 0.5 * Math.sin(7 * i)),
    [1, n, 1],
  );
  const unit = (x: Tensor): Tensor => tf.div(x, tf.add(tf.sqrt(tf.sum(tf.square(x), [1, 2], true)), 1e-30));
  const [{ x }] = ops.scan(
    (carry: { x: Tensor }) => [{ x: unit(tf.matMul(matrices, carry.x)) }, []] as const,
    { x: unit(tf.tile(start, [count, 1, 1])) },
    [],
    { length: POWER_STEPS },
  );
  return tf.sum(tf.mul(x, tf.matMul(matrices, x)), [1, 2], true);
}

/**
 * A^(-1/p) of each of several symmetric matrices without negative eigenvalues, with a ridge: M = zA and H = z^(1/p) I become I
 * and the root by T = ((p + 1) I - M) / p, M = T^p M, H = H T.
 *
 * @param matrices [matrices, n, n]
 * @param p from 1.
 * @returns roots, [matrices, n, n], and the largest entry of each M - I at the end, [matrices, 1, 1]
 */
export function inverseRoot(matrices: Tensor, p: number, ridge: Ridge): { root: Tensor; error: Tensor } {
  const [count, n] = matrices.shape as [number, number, number];
  const unit = tf.tile(tf.expandDims(identity(n), 0), [count, 1, 1]) as Tensor;
  const added = ridge.isRelative
    ? tf.mul(tf.maximum(largestEigenvalue(matrices), 1e-25), ridge.epsilon)
    : tf.scalar(ridge.epsilon);
  const damped = tf.add(matrices, tf.mul(unit, added));
  const z = tf.div((1 + p) / 2, normOf(damped));
  const m = tf.mul(damped, z) as Tensor;
  const init = { m, h: tf.mul(unit, tf.pow(z, 1 / p)) as Tensor, error: normOf(tf.sub(m, unit)) };
  const state = ops.whileLoop(
    ({ isOpen }: typeof init & { isOpen: Tensor }) => tf.any(isOpen) as Tensor,
    ({ m, h, error, isOpen }) => {
      const t = tf.div(tf.sub(tf.mul(unit, p + 1), m), p) as Tensor;
      const next = tf.matMul(power(t, p), m) as Tensor;
      const found = normOf(tf.sub(next, unit));
      // Far from I its fall is less than rounding, and near it nothing but rounding stops that.
      const most = tf.where(tf.less(error, NEAR), error, tf.mul(error, 1.2));
      const goesOn = tf.logicalAnd(isOpen, tf.less(found, most));
      return {
        m: tf.where(goesOn, next, m),
        h: tf.where(goesOn, tf.matMul(h, t), h) as Tensor,
        error: tf.where(goesOn, found, error),
        isOpen: tf.logicalAnd(goesOn, tf.greater(found, TOLERANCE)) as Tensor,
      };
    },
    { ...init, isOpen: tf.greater(init.error, TOLERANCE) as Tensor },
    { maxSteps: MAX_STEPS },
  );
  return { root: state.h, error: tf.max(tf.abs(tf.sub(state.m, unit)), [1, 2], true) };
}

/** The power of a matrix, p from 1. */
function power(matrix: Tensor, p: number): Tensor {
  if (p === 1) return matrix;
  const half = power(matrix, Math.floor(p / 2));
  const square = tf.matMul(half, half) as Tensor;
  return p % 2 === 0 ? square : (tf.matMul(square, matrix) as Tensor);
}
