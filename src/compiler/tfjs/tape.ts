/** @file tfjs's tape: the operations that its engine records for gradients. */
import * as tf from '@tensorflow/tfjs-core';

/** An operation on the tape. */
export interface TapeNode {
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

/**
 * Partial derivatives of `f` with respect to each of `xs`, to any order; zeros for those that it does not depend on.
 *
 * @param f takes copies of `xs`. Within another gradient the tape also says how `xs` came to be, so that a derivative by `xs`
 *   themselves would count what one of them, or `dy`, owes to another.
 */
export function gradientsBy(
  f: (...xs: tf.Tensor[]) => tf.Tensor,
  xs: readonly tf.Tensor[],
  dy?: tf.Tensor,
): tf.Tensor[] {
  const copies = xs.map((x) => tf.clone(x));
  return tf
    .engine()
    .gradients(() => f(...copies), copies, dy, true)
    .grads.map((gradient, i) => gradient ?? tf.zerosLike(xs[i]!));
}

/** A tape, and tfjs's depths of nested gradients and kernels. */
interface TapeState {
  activeTape: TapeNode[] | null;
  gradientDepth: number;
  kernelDepth: number;
}

/** tfjs's engine, as far as bodies of loops and branches need it. */
export const taping = tf.engine() as unknown as {
  isTapeOn(): boolean;
  readonly state: TapeState & { readonly nextTensorId: number };
} & Pick<TapeKeeper, 'addTapeNode'>;

/** Runs `f` while operations are recorded on this tape alone; on none for null. */
export function onTape<T>(tape: TapeNode[] | null, f: () => T): T {
  const { state } = taping;
  const { activeTape, gradientDepth, kernelDepth } = state;
  Object.assign(state, { activeTape: tape, gradientDepth: tape === null ? 0 : 1, kernelDepth: 0 });
  try {
    return f();
  } finally {
    Object.assign(state, { activeTape, gradientDepth, kernelDepth });
  }
}
