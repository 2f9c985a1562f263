/** @file Gradients over structures of tensors. */

import { CompilerError, type Tree } from '../program/tensors.js';
import { flattenTree, mapTree } from '../program/tensorTrees.js';
import * as tf from '../tfjs/tfjs.js';
import { keepCopy } from './tracing.js';

export const isTensor = (value: unknown): value is tf.Tensor => value instanceof tf.Tensor;

/** Auxiliary copies of the eager call under way. */
let auxiliaries: tf.Tensor[] | undefined;

/** A copy that no tidy disposes of, like the auxiliary results of `valueAndGrad`. */
export function keepAuxiliary(tensor: tf.Tensor): tf.Tensor {
  const copy = keepCopy(tensor);
  auxiliaries?.push(copy);
  return copy;
}

/** Calls `f` eagerly and then disposes of the tensors that it made, auxiliary copies among them. */
export function tidyAll(f: () => void): void {
  const outer = auxiliaries;
  const own: tf.Tensor[] = [];
  auxiliaries = own;
  try {
    tf.engine().tidy(f);
  } finally {
    auxiliaries = outer;
    for (const copy of own) copy.dispose();
  }
}

/**
 * The identity, eagerly or while tracing; reports the gradient of what is differentiated with respect to `x` while it
 * is computed. Records no operation.
 */
export function observeGradient(x: tf.Tensor, told: (gradient: tf.Tensor) => void): tf.Tensor {
  const identity = tf.customGrad((...[input]: any[]) => ({
    value: (input as tf.Tensor).clone(),
    gradFunc: (gradient: tf.Tensor) => {
      told(gradient);
      return gradient;
    },
  }));
  return identity(x);
}

/** Error for parameters that the differentiated value does not depend on. */
export class NoGradientError extends CompilerError {
  /** @param paths of the parameters. */
  constructor(readonly paths: readonly string[]) {
    const names = paths.map((path) => `'${path}'`).join(', ');
    super(`The differentiated value does not depend on ${names}: there is no gradient.`);
  }
}

/** Result of a differentiated function; an alias, as interfaces are no trees of tensors. */
type ValueAndGrad<P, A> = {
  /** The scalar loss. */
  readonly value: tf.Tensor;
  /** The other results of the function; in eager execution, the caller disposes of them. */
  readonly aux: A;
  /** d value / d params, in the structure of the parameters. */
  readonly grads: P;
};

/**
 * Calls `f` on `params` and differentiates its scalar `value` with respect to every leaf of `params`, eagerly or while
 * tracing.
 *
 * @param f returns the loss and a structure of other tensors, which carry no gradient.
 * @throws NoGradientError for parameters that `value` does not depend on.
 */
export function valueAndGrad<P extends Tree<tf.Tensor>, A extends Tree<tf.Tensor>>(
  f: (params: P) => { value: tf.Tensor; aux: A },
  params: P,
): ValueAndGrad<P, A> {
  const leaves = flattenTree<tf.Tensor>(params, isTensor);
  let aux: A | undefined;
  const forward = (): tf.Tensor => {
    const result = f(params);
    // The surrounding tidy disposes of everything that is not returned.
    aux = mapTree<tf.Tensor, tf.Tensor>(result.aux, isTensor, keepAuxiliary) as A;
    return result.value;
  };
  // tf.valueAndGrads does not report which parameters lack a gradient.
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
