/** @file Reproducible values for the compiler's tests, and for programs that run without a test runner. */
import {
  type DType,
  type HostTensor,
  prngKey,
  type Tensor,
  type Tree,
  tf,
  uniform,
  valueAndGrad,
} from '../../src/compiler/index.js';
import { hostArrayFrom, sizeOf } from '../../src/compiler/program/tensors.js';

/** A host tensor of given values. */
export const host = (shape: number[], values: ArrayLike<number>, dtype: DType = 'float32'): HostTensor => ({
  shape,
  dtype,
  data: hostArrayFrom(dtype, values),
});

/** float32 values, uniform in [low, high). */
export const floats = (shape: number[], low = -2, high = 2, seed = 1): HostTensor =>
  host(
    shape,
    uniform(prngKey(seed), sizeOf(shape)).map((u) => low + u * (high - low)),
  );

/** int32 values, uniform in [low, high). */
export const ints = (shape: number[], low: number, high: number, seed = 2): HostTensor =>
  host(
    shape,
    uniform(prngKey(seed), sizeOf(shape)).map((u) => Math.floor(low + u * (high - low))),
    'int32',
  );

/** bool values, half of them true. */
export const bools = (shape: number[], seed = 3): HostTensor =>
  host(
    shape,
    uniform(prngKey(seed), sizeOf(shape)).map((u) => Number(u < 0.5)),
    'bool',
  );

/** A sum of all outputs' elements, each with a weight of its own, so that no two gradients are alike. */
export function weightedSum(outputs: readonly Tensor[]): Tensor {
  const terms = outputs.map((output, i) => {
    const weights = uniform(prngKey(100 + i), output.size).map((u) => u + 0.5);
    return tf.sum(tf.mul(tf.cast(output, 'float32'), tf.tensor(weights, output.shape)));
  });
  return terms.reduce((sum, term) => tf.add(sum, term));
}

/** `f` with its gradient: outputs of `f`, and d weightedSum(f) / d params, where params are the first `count` inputs. */
export const withGradient =
  (f: (...args: any[]) => Tensor | Tensor[], count: number) =>
  (inputs: Tensor[]): Tree<Tensor> => {
    const rest = inputs.slice(count);
    const { value, aux, grads } = valueAndGrad(
      (params: Tensor[]) => {
        const outputs = [f(...params, ...rest)].flat();
        return { value: weightedSum(outputs), aux: outputs };
      },
      inputs.slice(0, count),
    );
    return { value, aux, grads };
  };
