/** @file What the compiler's tests share: reproducible values, and one function run by both engines. */
import { expect } from 'vitest';
import {
  type CompileOptions,
  compile,
  type HostTensor,
  ops,
  type Tensor,
  type Tree,
  tf,
} from '../../src/compiler/index.js';
import { leavesOf, repeatedly } from './repeatedRuns.js';

/** Compiles, runs repeatedly and disposes. */
export async function compiledResults(
  f: (inputs: any) => Tree<Tensor>,
  inputs: Tree<HostTensor>,
  options: CompileOptions = {},
): Promise<HostTensor[]> {
  const executable = await compile(f, inputs, { numThreads: 1, ...options });
  const result = leavesOf(await repeatedly(executable, inputs));
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

export * from './values.js';
export { leavesOf, ops, repeatedly, tf };
