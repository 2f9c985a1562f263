/** @file Calls of composites, which carry their meaning in tf operations. */
import type { Attrs } from '../program/ir.js';
import { precisionOf, runInPrecision } from '../program/precision.js';
import { compositeOf } from '../rules/index.js';
import type { Composite } from '../rules/operation.js';
import { gradientsBy } from '../tfjs/tape.js';
import * as tf from '../tfjs/tfjs.js';
import { isTracing, recordOp } from '../trace/tracing.js';

/**
 * Calls a composite. Traced, it is one node with its own gradient; in eager execution, tfjs runs and differentiates its
 * decomposition, an independent check of the gradient.
 *
 * @param differentiable how many leading `inputs` have gradients that are computed together.
 * @param late how many inputs behind these have a late gradient.
 */
export function callComposite(
  name: string,
  inputs: readonly tf.Tensor[],
  attrs: Attrs,
  differentiable = inputs.length,
  late = 0,
): tf.Tensor {
  const composite = compositeOf(name)!;
  if (!isTracing()) return composite.decompose(inputs, attrs)[0]!;
  const xs = inputs.slice(0, differentiable + late);
  let outputs: readonly tf.Tensor[];
  const forwardFunc = () => {
    outputs = recordOp(name, inputs, attrs);
    return [outputs[0]!];
  };
  const backwardsFunc = (dys: tf.Tensor | tf.Tensor[]): Record<string, () => tf.Tensor> => {
    const [dy] = [dys].flat() as [tf.Tensor];
    const gradientsOf = (first: number, count: number, compute: () => tf.Tensor[]) =>
      callGradient(composite, dy, inputs, attrs, { known: xs.length, first, count, compute });
    const { gradient } = composite;
    const [given, rest] = [inputs.slice(0, differentiable), inputs.slice(differentiable)];
    const together = gradient
      ? gradientsOf(0, differentiable, () => gradient(dy, inputs, outputs, attrs))
      : gradientsBy((...args) => composite.decompose([...args, ...rest], attrs)[0]!, given, dy);
    // tfjs calls the functions of those inputs alone that what it differentiates by leads to.
    const gradientOf = (i: number) => (): tf.Tensor =>
      together[i] ?? gradientsOf(i, 1, () => [composite.lateGradient!(dy, i, inputs, outputs, attrs)])[0]!;
    return Object.fromEntries(xs.map((_, i) => [i, gradientOf(i)]));
  };
  const named = Object.fromEntries(xs.map((x, i) => [i, x]));
  return engine().runKernelFunc({ forwardFunc, backwardsFunc, inputs: named })[0]!;
}

/** tfjs's engine, as far as functions with gradients need it. */
interface Differentiator {
  runKernelFunc(call: {
    readonly forwardFunc: () => tf.Tensor[];
    readonly backwardsFunc: (dys: tf.Tensor | tf.Tensor[]) => Record<string, () => tf.Tensor>;
    readonly inputs: Readonly<Record<string, tf.Tensor>>;
  }): tf.Tensor[];
}

const engine = (): Differentiator => tf.engine() as unknown as Differentiator;

/** Gradients of a composite by `count` of its inputs from `first` on, of which the leading `known` have gradients. */
interface GradientCall {
  readonly known: number;
  readonly first: number;
  readonly count: number;
  readonly compute: () => tf.Tensor[];
}

/**
 * Calls a composite's gradient as one operation. Its own gradients are those of the decomposition's gradient, which
 * tfjs differentiates to any order.
 */
function callGradient(
  composite: Composite,
  dy: tf.Tensor,
  inputs: readonly tf.Tensor[],
  attrs: Attrs,
  { known, first, count, compute }: GradientCall,
): tf.Tensor[] {
  const [xs, rest] = [inputs.slice(0, known), inputs.slice(known)];
  const value = (...given: tf.Tensor[]): tf.Tensor => composite.decompose([...given, ...rest], attrs)[0]!;
  const backwardsFunc = (dys: tf.Tensor | tf.Tensor[]): Record<string, () => tf.Tensor> => {
    const weights = [dys].flat();
    // The sum of gradients times their cotangents: its gradients are the requested ones.
    const weighted = (cotangent: tf.Tensor, ...given: tf.Tensor[]): tf.Tensor =>
      gradientsBy(value, given, cotangent)
        .slice(first, first + count)
        .map((gradient, i) => tf.sum(tf.mul(gradient, weights[i]!)) as tf.Tensor)
        .reduce((sum, term) => tf.add(sum, term));
    const gradients = runInPrecision(precisionOf(attrs), () => gradientsBy(weighted, [dy, ...xs]));
    return Object.fromEntries(gradients.map((gradient, i) => [i, () => gradient]));
  };
  const named = Object.fromEntries([dy, ...xs].map((arg, i) => [i, arg]));
  return engine().runKernelFunc({ forwardFunc: compute, backwardsFunc, inputs: named });
}
