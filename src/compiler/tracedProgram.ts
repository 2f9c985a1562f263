/** @file Traced program, with the structure of its arguments and results. */
import './operations.js';
import { isTensor } from './gradients.js';
import { checkIndices, type IndexCheck } from './indexChecks.js';
import { type Graph, joinGraphs } from './ir.js';
import { CompilerError, type TensorSpec, type Tree } from './tensors.js';
import { flattenTree, type Leaf, mapTree } from './tensorTrees.js';
import type * as tf from './tfjs.js';
import { traceGraph } from './tracing.js';

/** A function over one structure of tensors. */
export type TensorFunction = (inputs: any) => Tree<tf.Tensor>;

/** A graph, and the positions of its flat inputs and outputs in the caller's structures. */
export interface Program {
  readonly graph: Graph;
  readonly inputs: Tree<TensorSpec>;
  readonly outputs: Tree<TensorSpec>;
  /** Paths of the flat inputs and outputs, such as 'params.lm/softmax/w'. */
  readonly inputPaths: readonly string[];
  readonly outputPaths: readonly string[];
  /** Checks of inputs, to be made before each run. */
  readonly checks?: readonly IndexCheck[];
}

/** Adds index checks to a program that is to run. */
export const checkProgram = (program: Program): Program => ({ ...program, ...checkIndices(program.graph) });

/** Two programs in sequence; structures and paths are those of pairs. */
export function joinPrograms(first: Program, second: Program): Program {
  const paths = (a: readonly string[], b: readonly string[]): string[] => [
    ...a.map((path) => `0.${path}`),
    ...b.map((path) => `1.${path}`),
  ];
  return {
    graph: joinGraphs(first.graph, second.graph),
    inputs: [first.inputs, second.inputs],
    outputs: [first.outputs, second.outputs],
    inputPaths: paths(first.inputPaths, second.inputPaths),
    outputPaths: paths(first.outputPaths, second.outputPaths),
    checks: [
      ...(first.checks ?? []),
      ...(second.checks ?? []).map((check) => ({ ...check, input: check.input + first.graph.inputs.length })),
    ],
  };
}

/** Whether a tree's leaf is a spec, a host tensor or a tensor. */
export function isSpec(value: unknown): value is TensorSpec {
  return typeof value === 'object' && value !== null && 'dtype' in value && 'shape' in value;
}

/** @throws CompilerError for complex numbers, which only exist inside of programs. */
function refuseComplex(what: string, { path, value: { dtype, shape } }: Leaf<TensorSpec>): void {
  if ((dtype as string) !== 'complex64') return;
  const place = path === '' ? what : `${what} '${path}'`;
  throw new CompilerError(
    `The ${place} is complex64[${shape}]: programs take and give real numbers. ` +
      (what === 'input' ? 'Pass both parts, and call tf.complex.' : 'Return tf.real(x) and tf.imag(x).'),
  );
}

/** Traces `f` on symbolic tensors of these specs; `abstract` as in `traceGraph`. */
export function traceProgram(
  f: TensorFunction,
  inputs: Tree<TensorSpec>,
  options: { readonly abstract?: boolean } = {},
): Program {
  const leaves = flattenTree<TensorSpec>(inputs, isSpec);
  for (const leaf of leaves) refuseComplex('input', leaf);
  let outputs: Tree<TensorSpec> = [];
  let outputPaths: string[] = [];
  const graph = traceGraph(
    leaves.map(({ path, value }) => ({ name: path, spec: value })),
    (tensors) => {
      let next = 0;
      const results = f(mapTree<TensorSpec, tf.Tensor>(inputs, isSpec, () => tensors[next++]!));
      const flat = flattenTree<tf.Tensor>(results, isTensor);
      for (const leaf of flat) refuseComplex('output', leaf as Leaf<TensorSpec>);
      outputs = mapTree<tf.Tensor, TensorSpec>(results, isTensor, ({ shape, dtype }) => ({
        shape,
        dtype: dtype as TensorSpec['dtype'],
      }));
      outputPaths = flat.map((leaf) => leaf.path);
      return flat.map((leaf) => leaf.value);
    },
    options,
  );
  return { graph, inputs, outputs, inputPaths: leaves.map((leaf) => leaf.path), outputPaths };
}
