/**
 * @file Tests of keys. A key that lacks an input gives the result of something else, so all that are listed in `keyList.ts`
 * have their inputs varied one at a time; `keys.test.ts` finds those that are not listed.
 */
import { expect } from 'vitest';
import type { Tensor, TensorSpec, Tree } from '../src/compiler/index.js';
import { fingerprint } from '../src/compiler/program/fingerprint.js';
import type { Graph } from '../src/compiler/program/ir.js';
import { traceProgram } from '../src/compiler/trace/tracedProgram.js';
import { KEYS } from './keyList.js';

type Groups = typeof KEYS;
type KeyName = { [T in keyof Groups]: keyof Groups[T] }[keyof Groups] & string;
type RowOf<N> = { [T in keyof Groups]: N extends keyof Groups[T] ? Groups[T][N] : never }[keyof Groups];
type Words<S> = S extends `${infer First} ${infer Rest}` ? First | Words<Rest> : S;
type Inputs<N extends KeyName> = Readonly<
  Record<Words<RowOf<N> extends readonly unknown[] ? RowOf<N>[2] : never> & string, any>
>;

const rows: Readonly<Record<string, readonly string[]>> = Object.assign({}, ...Object.values(KEYS));

/** Inputs of a key that differ from `base` in one each, which comes first by its name; `others` has the other values. */
export const eachInput = <N extends KeyName>(
  name: N,
  base: Inputs<N>,
  others: Inputs<N>,
): [string, Inputs<N>][] =>
  rows[name]![2]!.split(' ').map((input) => [
    input,
    { ...base, [input]: (others as Readonly<Record<string, unknown>>)[input] },
  ]);

/** Expects that a key is the same for equal inputs, and another one for each other input. */
export function expectKey<N extends KeyName>(
  name: N,
  base: Inputs<N>,
  others: Inputs<N>,
  of: (inputs: Inputs<N>) => unknown,
): void {
  expect(of({ ...base }), `${name}: equal inputs`).toEqual(of(base));
  for (const [input, inputs] of eachInput(name, base, others))
    expect(of(inputs), `${name}: ${input}`).not.toEqual(of(base));
}

/** Expects that a comparison holds for equal inputs, and for no other. */
export function expectComparison<N extends KeyName>(
  name: N,
  base: Inputs<N>,
  others: Inputs<N>,
  same: (a: Inputs<N>, b: Inputs<N>) => boolean,
): void {
  expect(same(base, { ...base }), `${name}: equal inputs`).toBe(true);
  for (const [input, inputs] of eachInput(name, base, others))
    expect([same(base, inputs), same(inputs, base)], `${name}: ${input}`).toEqual([false, false]);
}

/** Fingerprints of what each call computes in one program of all. */
function computedBy(
  calls: readonly ((given: any) => Tensor)[],
  specs: Tree<TensorSpec>,
  pass: (graph: Graph) => Graph,
): string[] {
  const { graph: traced, inputPaths } = traceProgram((given) => calls.map((call) => call(given)), specs);
  const graph = pass(traced);
  return graph.outputs.map((output) =>
    fingerprint({ graph: { ...graph, outputs: [output] }, inputPaths, outputPaths: ['0'] }),
  );
}

/**
 * Expects that a program of several calls, which share what has the same key, computes for each what a program of that call
 * alone does, and something else for each other input.
 */
export function expectUnmixed<N extends KeyName>(
  name: N,
  base: Inputs<N>,
  others: Inputs<N>,
  call: (inputs: Inputs<N>, given: any) => Tensor,
  specs: Tree<TensorSpec> = {},
  pass: (graph: Graph) => Graph = (graph) => graph,
): void {
  const all = [['equal inputs', base] as const, ...eachInput(name, base, others)];
  const calls = all.map(
    ([, inputs]) =>
      (given: any) =>
        call(inputs, given),
  );
  const alone = calls.map((each) => computedBy([each], specs, pass)[0]!);
  const named = (found: readonly string[]) => found.map((each, i) => [name, all[i]![0], each]);
  expect(named(computedBy(calls, specs, pass))).toEqual(named(alone));
  expect(new Set(alone).size, `${name}: results differ`).toBe(all.length);
}
