/** @file Traced program, with the structure of its arguments and results. */
import '../ops/operations.js';
import { storageOf } from '../ops/stored.js';
import { checkIndices, type IndexCheck } from '../program/indexChecks.js';
import { type Graph, joinGraphs, newValue, type Value } from '../program/ir.js';
import {
  CompilerError,
  type HostTensor,
  NARROW,
  type NarrowType,
  type TensorSpec,
  type Tree,
} from '../program/tensors.js';
import { flattenTree, type Leaf, mapTree } from '../program/tensorTrees.js';
import type * as tf from '../tfjs/tfjs.js';
import { isTensor } from './gradients.js';
import { traceGraph } from './tracing.js';

/** A function over one structure of tensors. */
export type TensorFunction = (inputs: any) => Tree<tf.Tensor>;

/** Results of a function as its program gives them: host tensors in the places of tensors. */
export type OnHost<R> =
  Tree<tf.Tensor> extends R
    ? Tree<HostTensor>
    : R extends tf.Tensor
      ? HostTensor
      : { readonly [K in keyof R]: OnHost<R[K]> };

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
export function checkProgram(program: Program): Program {
  const { graph, checks } = checkIndices(program.graph);
  return { ...program, graph, checks: [...(program.checks ?? []), ...checks] };
}

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

/**
 * Two programs as one: what the first one gives, the second takes by the same paths. Its results are those of the second, and
 * some of the first.
 *
 * @param kept names of structures among the first one's results.
 */
export function chainPrograms(first: Program, second: Program, kept: readonly string[]): Program {
  const made = new Map(first.outputPaths.map((path, i) => [path, first.graph.outputs[i]!]));
  const given = new Map(second.graph.inputs.map((input, i) => [input, made.get(second.inputPaths[i]!)!]));
  const passed = (value: Value): Value => given.get(value) ?? value;
  const results = first.outputPaths.flatMap((path, i) =>
    kept.some((name) => path.startsWith(`${name}.`)) ? [{ path, value: first.graph.outputs[i]! }] : [],
  );
  const structures = first.outputs as Readonly<Record<string, Tree<TensorSpec>>>;
  return {
    ...first,
    graph: {
      inputs: first.graph.inputs,
      nodes: [
        ...first.graph.nodes,
        ...second.graph.nodes.map((node) => ({ ...node, inputs: node.inputs.map(passed) })),
      ],
      outputs: [...second.graph.outputs.map(passed), ...results.map(({ value }) => value)],
    },
    outputs: {
      ...(second.outputs as object),
      ...Object.fromEntries(kept.map((name) => [name, structures[name]!])),
    },
    outputPaths: [...second.outputPaths, ...results.map(({ path }) => path)],
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

/** @throws CompilerError for a storage that does not hold the dtype. */
function checkStorage({ path, value: { dtype, storage } }: Leaf<TensorSpec>): void {
  if (storage === undefined || NARROW[storage]?.dtype === dtype) return;
  throw new CompilerError(
    `The input${path === '' ? '' : ` '${path}'`} is ${dtype} and can't be stored as ${storage}: int8 and uint8 hold int32, ` +
      'bfloat16 and float16 hold float32.',
  );
}

function specOf(result: tf.Tensor): TensorSpec {
  const { shape, dtype } = result;
  const storage = storageOf(result);
  const spec = { shape, dtype: dtype as TensorSpec['dtype'] };
  return storage === undefined ? spec : { ...spec, storage };
}

/** The graph with outputs as memory holds them. */
function storeOutputs(graph: Graph, storages: readonly (NarrowType | undefined)[]): Graph {
  if (storages.every((storage) => storage === undefined)) return graph;
  const nodes = [...graph.nodes];
  const outputs = graph.outputs.map((output, i) => {
    const storage = storages[i];
    if (storage === undefined) return output;
    const held = newValue({ shape: output.shape, dtype: output.dtype, storage });
    nodes.push({ op: 'Store', inputs: [output], outputs: [held], attrs: { storage }, scope: '' });
    return held;
  });
  return { inputs: graph.inputs, nodes, outputs };
}

/** Traces `f` on symbolic tensors of these specs; `abstract` as in `traceGraph`. */
export function traceProgram(
  f: TensorFunction,
  inputs: Tree<TensorSpec>,
  options: { readonly abstract?: boolean } = {},
): Program {
  const leaves = flattenTree<TensorSpec>(inputs, isSpec);
  for (const leaf of leaves) {
    refuseComplex('input', leaf);
    checkStorage(leaf);
  }
  let outputs: Tree<TensorSpec> = [];
  let outputPaths: string[] = [];
  let storages: (NarrowType | undefined)[] = [];
  const graph = traceGraph(
    leaves.map(({ path, value }) => ({ name: path, spec: value })),
    (tensors) => {
      let next = 0;
      const results = f(mapTree<TensorSpec, tf.Tensor>(inputs, isSpec, () => tensors[next++]!));
      const flat = flattenTree<tf.Tensor>(results, isTensor);
      for (const leaf of flat) refuseComplex('output', leaf as Leaf<TensorSpec>);
      outputs = mapTree<tf.Tensor, TensorSpec>(results, isTensor, (result) => specOf(result));
      storages = flat.map(({ value }) => storageOf(value));
      outputPaths = flat.map((leaf) => leaf.path);
      return flat.map((leaf) => leaf.value);
    },
    options,
  );
  const inputPaths = leaves.map((leaf) => leaf.path);
  return { graph: storeOutputs(graph, storages), inputs, outputs, inputPaths, outputPaths };
}
