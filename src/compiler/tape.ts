/** @file tfjs's tape: the operations that its engine records for gradients. */
import * as tf from '@tensorflow/tfjs-core';

/** An operation on the tape. */
interface TapeNode {
  readonly inputs: Readonly<Record<string, tf.Tensor>>;
  readonly outputs: readonly tf.Tensor[];
  readonly saved?: readonly tf.Tensor[];
  gradient?: (dys: tf.Tensor[]) => Record<string, () => tf.Tensor>;
}

/** The part of tfjs's engine that records operations. */
export interface TapeKeeper {
  addTapeNode(
    name: string,
    inputs: TapeNode['inputs'],
    outputs: TapeNode['outputs'],
    ...rest: unknown[]
  ): void;
  gradients(...args: unknown[]): unknown;
  readonly state: { activeTape: TapeNode[]; readonly gradientDepth: number };
}

/** Gradients of `f` with respect to `xs`, to any order; zeros for those that it does not depend on. */
export const gradientsBy = (f: () => tf.Tensor, xs: readonly tf.Tensor[], dy?: tf.Tensor): tf.Tensor[] =>
  tf
    .engine()
    .gradients(f, [...xs], dy, true)
    .grads.map((gradient, i) => gradient ?? tf.zerosLike(xs[i]!));
