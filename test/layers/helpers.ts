/** @file What the tests of layers share: values, gradients by finite differences, running a layer. */
import '@tensorflow/tfjs-backend-cpu';
import { expect } from 'vitest';
import { sizeOf, type Tensor, type TensorSpec, tf } from '../../src/compiler/index.js';
import {
  type BaseLayer,
  type ContextOptions,
  initVariables,
  listVariables,
  runInContext,
  type Variable,
  WeightCollection,
} from '../../src/layers/index.js';

/** A repeatable sequence of numbers in (-1, 1). */
export function numbers(count: number, seed = 1): Float32Array {
  let state = seed * 2654435761;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 2 ** 32) * 2 - 1;
  });
}

/** Whether a variable is state, without gradients. */
export const isState = ({ collections }: Variable): boolean =>
  collections.includes(WeightCollection.NON_TRAINABLE);

export const tensor = (shape: number[], seed = 1): Tensor =>
  tf.tensor(numbers(sizeOf(shape), seed), shape, 'float32');

export const ints = (values: number[], shape: number[]): Tensor => tf.tensor(values, shape, 'int32');

/** Values for all variables of `layer`: generic numbers, so that no term vanishes. */
export function randomTheta(layer: BaseLayer, seed = 7, scale = 0.5): Record<string, Tensor> {
  return Object.fromEntries(
    listVariables(layer).map(({ path, shape }, i) => [
      path,
      tf.mul(tensor([...shape], seed + i), scale) as Tensor,
    ]),
  );
}

/** The layer's initial values. */
export function initialTheta(layer: BaseLayer, seed = 1): Record<string, Tensor> {
  const values = initVariables(layer, seed);
  return Object.fromEntries(
    listVariables(layer).map(({ path, shape }) => [
      path,
      tf.tensor(values.get(path)!, [...shape], 'float32'),
    ]),
  );
}

/** Tensors by the specs of a decode's state, each of one number: zeros begin a decode. */
export const stateOf = (specs: Readonly<Record<string, TensorSpec>>, value = 0): Record<string, Tensor> =>
  Object.fromEntries(
    Object.entries(specs).map(([path, { shape, dtype }]) => [path, tf.fill([...shape], value, dtype)]),
  );

export function run<T>(
  theta: Record<string, Tensor>,
  fn: () => T,
  options: Omit<ContextOptions, 'theta'> = {},
): T {
  return runInContext({ theta, ...options }, fn);
}

export function expectClose(actual: Tensor, expected: ArrayLike<number>, tolerance = 1e-5): void {
  const values = actual.dataSync();
  expect(values.length).toBe(expected.length);
  for (let i = 0; i < values.length; i++) {
    const error = Math.abs(values[i]! - expected[i]!);
    if (!(error <= tolerance * (1 + Math.abs(expected[i]!)))) {
      expect.fail(`element ${i}: got ${values[i]}, expected ${expected[i]}`);
    }
  }
}

/**
 * Compares the gradient of a scalar by all values with its slope along two directions in all of them, by differences of fourth
 * order: a few passes, whatever the number of values.
 */
export function checkSlope(
  loss: (values: Record<string, Tensor>) => Tensor,
  values: Readonly<Record<string, Tensor>>,
): void {
  const paths = Object.keys(values);
  const at = paths.map((path) => values[path]!);
  const lossOf = (...xs: Tensor[]): tf.Scalar =>
    tf.reshape(loss(Object.fromEntries(paths.map((path, i) => [path, xs[i]!]))), []) as tf.Scalar;
  const gradients = tf.grads(lossOf)(at);
  for (const seed of [31, 77]) {
    const direction = at.map((x, i) => tensor([...x.shape], seed + i));
    const expected = gradients.reduce(
      (sum, gradient, i) => sum + tf.sum(tf.mul(gradient, direction[i]!)).dataSync()[0]!,
      0,
    );
    const moved = (by: number): number =>
      lossOf(...at.map((x, i) => tf.add(x, tf.mul(direction[i]!, by)) as Tensor)).dataSync()[0]!;
    const slope = (by: number): number => (moved(by) - moved(-by)) / (2 * by);
    const found = (4 * slope(2e-3) - slope(4e-3)) / 3;
    expect(Math.abs(found - expected), `slope ${found}, gradient ${expected}`).toBeLessThan(
      5e-3 * (1 + Math.abs(expected)),
    );
  }
}

/**
 * Compares the gradients of sum(outputs * fixed weights) with respect to all variables and to `inputs` with central
 * differences, element by element (at most `probes` of each tensor): of second order, and of fourth where those are too far off.
 */
export function checkGradients(
  layer: BaseLayer,
  inputs: Tensor[],
  fprop: (...inputs: Tensor[]) => Tensor,
  options: Omit<ContextOptions, 'theta'> & {
    probes?: number;
    tolerance?: number;
    theta?: Record<string, Tensor>;
    /** Values of further variables, which have no gradient. */
    state?: Record<string, Tensor>;
  } = {},
): void {
  const { probes = 6, tolerance = 2e-2, theta = randomTheta(layer), state, ...context } = options;
  const paths = Object.keys(theta);
  const all = [...inputs, ...paths.map((path) => theta[path]!)];
  const loss = (...xs: Tensor[]): tf.Scalar => {
    const values = Object.fromEntries(paths.map((path, i) => [path, xs[inputs.length + i]!]));
    const outputs = run({ ...state, ...values }, () => fprop(...xs.slice(0, inputs.length)), context);
    return tf.sum(tf.mul(outputs, tensor(outputs.shape, 99)));
  };
  const grads = tf.grads(loss)(all);
  all.forEach((x, k) => {
    const data = x.dataSync();
    const grad = grads[k]!.dataSync();
    for (let probe = 0; probe < Math.min(probes, data.length); probe++) {
      const i = Math.floor((probe * data.length) / Math.min(probes, data.length));
      const step = 1e-2;
      const at = (delta: number): number => {
        const moved = Float32Array.from(data);
        moved[i]! += delta;
        const xs = [...all];
        xs[k] = tf.tensor(moved, x.shape, 'float32');
        return tf.tidy(() => loss(...xs).dataSync()[0]!);
      };
      const slope = (delta: number): number => (at(delta) - at(-delta)) / (2 * delta);
      const isNear = (value: number): boolean =>
        Math.abs(value - grad[i]!) <= tolerance * (1e-1 + Math.abs(value));
      const near = slope(step);
      if (isNear(near)) continue;
      const numeric = (4 * near - slope(2 * step)) / 3;
      if (!isNear(numeric)) {
        const name = k < inputs.length ? `input ${k}` : paths[k - inputs.length]!;
        expect.fail(`${name}[${i}]: gradient ${grad[i]}, finite differences ${numeric}`);
      }
    }
  });
}
