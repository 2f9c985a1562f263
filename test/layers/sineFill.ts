/** @file Pax's sine fill, by which published sums are asserted: values of variables and inputs, and sums of what comes of them. */
import { sizeOf, type Tensor, tf } from '../../src/compiler/index.js';
import { type BaseLayer, initVariables, listVariables } from '../../src/layers/index.js';
import { isState } from './helpers.js';

/** Pax's sine fill: element i of each trained variable is 0.1 sin(i + 1); state has its initial values. */
export function sineTheta(layer: BaseLayer): Record<string, Tensor> {
  const initial = initVariables(layer, 1);
  const values = listVariables(layer).map((variable) => {
    const { path, shape } = variable;
    const data = Float32Array.from({ length: sizeOf(shape) }, (_, i) => 0.1 * Math.sin(i + 1));
    return [path, tf.tensor(isState(variable) ? initial.get(path)! : data, [...shape])] as const;
  });
  return Object.fromEntries(values);
}

/** Input of the sine fill: element i is sin(0.7 i). */
export const sineInput = (shape: readonly number[]): Tensor =>
  tf.tensor(
    Float32Array.from({ length: sizeOf(shape) }, (_, i) => Math.sin(0.7 * i)),
    [...shape],
  );

/** Number of elements of the trained variables, or of state. */
export const parameterCount = (layer: BaseLayer, ofState = false): number =>
  listVariables(layer)
    .filter((variable) => isState(variable) === ofState)
    .reduce((total, { shape }) => total + sizeOf(shape), 0);

/** Sum and sum of squares, in float64. */
export function sums(x: Tensor): { readonly s: number; readonly q: number } {
  let [s, q] = [0, 0];
  for (const value of x.dataSync()) {
    s += value;
    q += value * value;
  }
  return { s, q };
}

/** Global norm of the gradient of `loss` by the values of `theta`. */
export function gradientNorm(
  theta: Record<string, Tensor>,
  loss: (theta: Record<string, Tensor>) => Tensor,
): number {
  const paths = Object.keys(theta);
  const scalar = (...xs: Tensor[]) =>
    loss(Object.fromEntries(paths.map((path, i) => [path, xs[i]!]))) as tf.Scalar;
  const gradients = tf.grads(scalar)(paths.map((path) => theta[path]!));
  return Math.sqrt(gradients.reduce((total, x) => total + sums(x).q, 0));
}
