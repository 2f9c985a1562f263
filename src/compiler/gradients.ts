/** @file Gradients over structures of tensors. */

import { CompilerError, type Tree } from './tensors.js';
import { flattenTree, mapTree } from './tensorTrees.js';
import * as tf from './tfjs.js';
import { keepCopy } from './tracing.js';

export const isTensor = (value: unknown): value is tf.Tensor => value instanceof tf.Tensor;

const auxiliary = new WeakSet<tf.Tensor>();

/** Whether a tensor is an auxiliary result of `valueAndGrad`: it is nobody else's, and no tidy disposes of it. */
export const isAuxiliary = (tensor: tf.Tensor): boolean => auxiliary.has(tensor);

function keepAuxiliary(tensor: tf.Tensor): tf.Tensor {
  const copy = keepCopy(tensor);
  auxiliary.add(copy);
  return copy;
}

/** Parameters that a differentiated value does not follow from. */
export class NoGradientError extends CompilerError {
  /** @param paths of the parameters. */
  constructor(readonly paths: readonly string[]) {
    const names = paths.map((path) => `'${path}'`).join(', ');
    super(`The differentiated value does not follow from ${names}: there is no gradient.`);
  }
}

/** What a differentiated function gives. */
export interface ValueAndGrad<P, A> {
  /** The scalar loss. */
  readonly value: tf.Tensor;
  /** Whatever else the function returned; eagerly, the caller's to dispose of. */
  readonly aux: A;
  /** d value / d params, of the same structure as the parameters. */
  readonly grads: P;
}

/**
 * Calls `f` on `params` and differentiates its scalar `value` with respect to every leaf of `params`. Works eagerly
 * and while tracing.
 *
 * @param f returns the loss and a structure of other tensors, which carry no gradient.
 * @throws NoGradientError for parameters that `value` does not follow from.
 */
export function valueAndGrad<P extends Tree<tf.Tensor>, A extends Tree<tf.Tensor>>(
  f: (params: P) => { value: tf.Tensor; aux: A },
  params: P,
): ValueAndGrad<P, A> {
  const leaves = flattenTree<tf.Tensor>(params, isTensor);
  let aux: A | undefined;
  const forward = (): tf.Tensor => {
    const result = f(params);
    // The surrounding tidy would drop what is not returned.
    aux = mapTree<tf.Tensor, tf.Tensor>(result.aux, isTensor, keepAuxiliary) as A;
    return result.value;
  };
  // Not tf.valueAndGrads, which doesn't tell what has no gradient.
  const tensors = leaves.map((leaf) => leaf.value);
  const { value, grads } = tf.engine().gradients(forward, tensors, undefined, true);
  const missing = leaves.filter((_, i) => grads[i] == null).map(({ path }) => path);
  if (missing.length > 0) throw new NoGradientError(missing);
  let next = 0;
  return {
    value,
    aux: aux!,
    grads: mapTree<tf.Tensor, tf.Tensor>(params, isTensor, () => grads[next++]!) as P,
  };
}
