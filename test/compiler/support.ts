/** @file What the compiler's tests share: reproducible values, and one function run by both engines. */
import { expect, vi } from 'vitest';
import {
  type CompileOptions,
  compile,
  type DType,
  type HostTensor,
  ops,
  prngKey,
  type Tensor,
  type Tree,
  tf,
  uniform,
  valueAndGrad,
} from '../../src/compiler/index.js';
import { isSpec } from '../../src/compiler/program.js';
import { flattenTree } from '../../src/compiler/tree.js';
import { hostArrayFrom, sizeOf } from '../../src/compiler/types.js';

// Many small programs are compiled in one test, maybe on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

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

export const leavesOf = (tree: Tree<HostTensor>): HostTensor[] =>
  flattenTree<HostTensor>(tree, isSpec as (value: unknown) => value is HostTensor).map((leaf) => leaf.value);

/** Compiles, runs once and disposes. */
export async function runOnce(
  f: (inputs: any) => Tree<Tensor>,
  inputs: Tree<HostTensor>,
  options: CompileOptions = {},
): Promise<HostTensor[]> {
  const executable = await compile(f, inputs, { numThreads: 1, ...options });
  const result = leavesOf(await executable.run(inputs));
  await executable.dispose();
  return result;
}

/** The largest error that counts as agreement: absolute, or relative to the expected value. */
export interface Tolerance {
  readonly relative?: number;
  readonly absolute?: number;
}

/** Asserts the same shape, dtype and values; NaN and infinities must stand in the same places. */
export function expectClose(
  actual: HostTensor,
  expected: HostTensor,
  { relative = 1e-5, absolute = 1e-6 }: Tolerance = {},
  what = 'result',
): void {
  expect(`${actual.dtype}[${actual.shape}]`, `${what}: dtype and shape`).toBe(
    `${expected.dtype}[${expected.shape}]`,
  );
  expect(actual.data.length).toBe(expected.data.length);
  for (let i = 0; i < expected.data.length; i++) {
    const [a, e] = [actual.data[i]!, expected.data[i]!];
    if (a === e || (Number.isNaN(a) && Number.isNaN(e))) continue;
    if (Math.abs(a - e) <= absolute + relative * Math.abs(e) && Number.isFinite(e)) continue;
    expect.fail(`${what}, element ${i}: got ${a}, expected ${e}`);
  }
}

/** As `expectClose`, relative to the largest element: an element may be a difference of two that cancel. */
export function expectCloseToLargest(actual: HostTensor, expected: HostTensor, what: string): void {
  let largest = 1;
  for (const value of expected.data) largest = Math.max(largest, Math.abs(value));
  expectClose(actual, expected, { relative: 0, absolute: 1e-5 * largest }, what);
}

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

export { ops, tf };
