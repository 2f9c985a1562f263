/** @file Inputs that each output of a function depends on. */
import type { Value } from '../program/ir.js';
import type { TensorSpec, Tree } from '../program/tensors.js';
import { type Program, type TensorFunction, traceProgram } from './tracedProgram.js';

/** The outputs of a function on arguments of these specs by path, each with the paths of the inputs it depends on. */
export const dependences = (f: TensorFunction, inputs: Tree<TensorSpec>): Map<string, ReadonlySet<string>> =>
  dependencesOf(traceProgram(f, inputs, { abstract: true }));

/** As `dependences`, of an earlier trace. */
export function dependencesOf({ graph, inputPaths, outputPaths }: Program): Map<string, ReadonlySet<string>> {
  const none: ReadonlySet<string> = new Set();
  const behind = new Map<Value, ReadonlySet<string>>(
    graph.inputs.map((input, i) => [input, new Set([inputPaths[i]!])]),
  );
  for (const node of graph.nodes) {
    const found = new Set(node.inputs.flatMap((input) => [...(behind.get(input) ?? none)]));
    for (const output of node.outputs) behind.set(output, found);
  }
  return new Map(graph.outputs.map((output, i) => [outputPaths[i]!, behind.get(output) ?? none]));
}
