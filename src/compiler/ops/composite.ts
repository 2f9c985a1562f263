/** @file Composites: operations with a name of their own that carry their decomposition into tf operations. */

import type { Attrs } from '../ir.js';
import { precisionOf, runInPrecision } from '../precision.js';
import { defineOp, ruleOf } from '../rules/index.js';
import type { OpRule } from '../rules/rule.js';
import * as tf from '../tfjs.js';
import { isTracing, recordOp } from '../tracing.js';

/** A composite: a lowering may keep it as one operation, or expand it. */
export interface Composite extends OpRule {
  /** The same outputs by tf operations; the first may be differentiated by tfjs itself. */
  readonly decompose: (inputs: readonly tf.Tensor[], attrs: Attrs) => tf.Tensor[];
  /** Gradients of the first output with respect to the differentiable inputs, for traced calls. */
  readonly gradient?: (
    dy: tf.Tensor,
    inputs: readonly tf.Tensor[],
    outputs: readonly tf.Tensor[],
    attrs: Attrs,
  ) => tf.Tensor[];
}

const composites = new Map<string, Composite>();

/** Makes a composite known to the tracer and to the passes. */
export function defineComposite(name: string, composite: Composite): void {
  defineOp(name, composite);
  composites.set(name, composite);
}

/** Has lowerings that do not keep this kernel of tfjs as one operation do it by others; its gradient is tfjs's. */
export function decomposeKernel(name: string, decompose: Composite['decompose']): void {
  composites.set(name, { ...ruleOf(name), decompose });
}

/** The composite of that name, or undefined for a plain operation. */
export function compositeOf(name: string): Composite | undefined {
  return composites.get(name);
}

/**
 * Calls a composite: traced, it is one node with its own gradient; eagerly, its decomposition runs and tfjs
 * differentiates that, which makes the eager engine an independent check of the gradient.
 *
 * @param differentiable how many of `inputs`, counted from the first, have a gradient.
 */
export function callComposite(
  name: string,
  inputs: readonly tf.Tensor[],
  attrs: Attrs,
  differentiable = inputs.length,
): tf.Tensor {
  const composite = composites.get(name)!;
  if (!isTracing()) return composite.decompose(inputs, attrs)[0]!;
  const rest = inputs.slice(differentiable);
  const call = tf.customGrad((...args: any[]) => {
    const all: tf.Tensor[] = [...args.slice(0, differentiable), ...rest];
    const outputs = recordOp(name, all, attrs);
    const gradFunc = (dy: tf.Tensor) => callGradient(composite, dy, all, outputs, attrs, differentiable);
    return { value: outputs[0]!, gradFunc };
  });
  return call(...inputs.slice(0, differentiable));
}

/** What of tfjs's engine works with functions that have gradients. */
interface Differentiator {
  runKernelFunc(call: {
    readonly forwardFunc: () => tf.Tensor[];
    readonly backwardsFunc: (dys: tf.Tensor | tf.Tensor[]) => Record<string, () => tf.Tensor>;
    readonly inputs: Readonly<Record<string, tf.Tensor>>;
  }): tf.Tensor[];
  gradients(
    f: () => tf.Tensor,
    xs: readonly tf.Tensor[],
    dy: tf.Tensor | undefined,
    allowNoGradients: boolean,
  ): { readonly grads: readonly (tf.Tensor | null)[] };
}

const engine = (): Differentiator => tf.engine() as unknown as Differentiator;

/** Gradients of `f`, which reads `xs`; zeros by those that it does not depend on. */
const gradientsBy = (f: () => tf.Tensor, xs: readonly tf.Tensor[], dy?: tf.Tensor): tf.Tensor[] =>
  engine()
    .gradients(f, xs, dy, true)
    .grads.map((gradient, i) => gradient ?? tf.zerosLike(xs[i]!));

/**
 * Calls a composite's gradient as one operation, whose own gradients are those of the decomposition's gradient: tfjs
 * differentiates that as often as it is asked to.
 */
function callGradient(
  composite: Composite,
  dy: tf.Tensor,
  inputs: readonly tf.Tensor[],
  outputs: readonly tf.Tensor[],
  attrs: Attrs,
  differentiable: number,
): tf.Tensor[] {
  const xs = inputs.slice(0, differentiable);
  const value = (): tf.Tensor => composite.decompose(inputs, attrs)[0]!;
  const backwardsFunc = (dys: tf.Tensor | tf.Tensor[]): Record<string, () => tf.Tensor> => {
    const weights = [dys].flat();
    // The sum of what the gradients are multiplied by: its gradients are what is asked for.
    const weighted = (): tf.Tensor =>
      gradientsBy(value, xs, dy)
        .map((gradient, i) => tf.sum(tf.mul(gradient, weights[i]!)) as tf.Tensor)
        .reduce((sum, term) => tf.add(sum, term));
    const gradients = runInPrecision(precisionOf(attrs), () => gradientsBy(weighted, [dy, ...xs]));
    return Object.fromEntries(gradients.map((gradient, i) => [i, () => gradient]));
  };
  const forwardFunc = () => composite.gradient!(dy, inputs, outputs, attrs);
  const named = Object.fromEntries([dy, ...xs].map((arg, i) => [i, arg]));
  return engine().runKernelFunc({ forwardFunc, backwardsFunc, inputs: named });
}
