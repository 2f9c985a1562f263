/** @file Gradients of bodies, and of the operations that repeat or choose them. */

import type { TensorSpec } from '../program/tensors.js';
import { type TapeNode, taping } from '../tfjs/tape.js';
import * as tf from '../tfjs/tfjs.js';

/** tfjs's engine, as far as functions with gradients need it. */
interface Differentiator {
  runKernelFunc(call: {
    readonly forwardFunc: () => tf.Tensor;
    readonly backwardsFunc: () => Readonly<Record<number, () => tf.Tensor>>;
    readonly inputs: Readonly<Record<number, tf.Tensor>>;
  }): tf.Tensor;
  gradients(
    f: () => tf.Tensor,
    xs: tf.Tensor[],
    dy: undefined,
    allowNone: true,
  ): { readonly grads: readonly (tf.Tensor | null | undefined)[] };
}

const byNumber = <T>(values: readonly T[]): Record<number, T> => Object.fromEntries(values.entries());

/** A tensor of zeros; `tf.zeros` would allocate on the host. */
export const zerosOf = ({ shape }: { readonly shape: readonly number[] }): tf.Tensor =>
  tf.fill([...shape], 0);

/** The spec of a traced tensor. */
export const specOf = ({ shape, dtype }: tf.Tensor): TensorSpec => ({ shape, dtype: dtype as 'float32' });

export const isFloat = ({ dtype }: tf.Tensor): boolean => dtype === 'float32';

/**
 * Gradients by `xs` of the outputs on the current tape, with these cotangents; undefined for tensors that no output
 * depends on, and for integers and booleans: tfjs would follow a counter through the comparison that ends a loop.
 */
export function gradientsWith(
  outputs: readonly tf.Tensor[],
  cotangents: readonly tf.Tensor[],
  xs: readonly tf.Tensor[],
): readonly (tf.Tensor | undefined)[] {
  const floats = xs.filter(isFloat);
  if (outputs.length === 0 || floats.length === 0) return xs.map(() => undefined);
  const engine = tf.engine() as unknown as Differentiator;
  // A sum of the outputs times their cotangents, of which only the gradients are asked for.
  const weighted = (): tf.Tensor =>
    engine.runKernelFunc({
      forwardFunc: () => tf.scalar(0),
      backwardsFunc: () => byNumber(cotangents.map((cotangent) => () => cotangent)),
      inputs: byNumber(outputs),
    });
  const { grads } = engine.gradients(weighted, floats, undefined, true);
  return xs.map((x) => (isFloat(x) ? (grads[floats.indexOf(x)] ?? undefined) : undefined));
}

/** Whether gradients are being recorded that nothing differentiates. */
let isLast = false;

/** Runs `f`, which records the gradient of a body, and tells it whether nothing differentiates that gradient. */
export function differentiating<T>(f: (isLast: boolean) => T): T {
  const outer = isLast;
  isLast ||= !taping.isTapeOn();
  try {
    return f(isLast);
  } finally {
    isLast = outer;
  }
}

/** Stands for a cotangent that is zero everywhere. */
const NONE = {} as tf.Tensor;

/**
 * Records an operation on tfjs's tape, if one is kept.
 *
 * @param gradientsOf gives the gradients by the inputs from the cotangents, which are undefined where zero; undefined where
 *   zero, too.
 * @param saved tape nodes whose saved tensors may be disposed of with the tape.
 */
export function recordGradient(
  name: string,
  inputs: readonly tf.Tensor[],
  outputs: readonly tf.Tensor[],
  gradientsOf: (dys: readonly (tf.Tensor | undefined)[]) => readonly (tf.Tensor | undefined)[],
  saved: readonly TapeNode[],
): void {
  if (!taping.isTapeOn()) return;
  const gradients = (dys: tf.Tensor | readonly tf.Tensor[]): Record<number, () => tf.Tensor> => {
    // Here and not in the functions below: tfjs disposes of all that one of them makes but its result.
    const all = gradientsOf([dys].flat().map((dy) => (dy === NONE ? undefined : dy)));
    return byNumber(inputs.map((input, i) => () => (all[i] ? tf.clone(all[i]) : zerosOf(input))));
  };
  taping.addTapeNode(
    name,
    byNumber(inputs),
    outputs,
    gradients,
    saved.flatMap((node) => node.saved ?? []),
    {},
  );
  const node = taping.state.activeTape!.findLast((node) => node.outputs === outputs)!;
  const withZeros = node.gradient!;
  // tfjs would allocate zeros for cotangents that are missing.
  node.gradient = (dys) => withZeros(dys.map((dy) => dy ?? NONE));
}
