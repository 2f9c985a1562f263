/** @file Cheap operations on inputs, once for a sum of all and once for an update with codes behind it. */
import { type Graph, type Node, newValue, type Value } from '../../program/ir.js';
import { formOf } from './forms.js';

const isCode = ({ storage }: Value): boolean => storage === 'int8' || storage === 'uint8';

const isReduction = ({ op }: Node): boolean => formOf(op)?.kind === 'reduction';

function readersOf({ nodes }: Graph): Map<Value, Node[]> {
  const readers = new Map<Value, Node[]>();
  for (const node of nodes)
    for (const input of new Set(node.inputs)) readers.set(input, [...(readers.get(input) ?? []), node]);
  return readers;
}

/**
 * Of the square of a gradient, which its norm sums and an update reads when all norms are known, the update has one of its
 * own: it reads the gradient in any case, and the squares need no memory. In programs without codes they stay one: how loops
 * are cut there decides where products and sums are rounded at once.
 */
export function withSquaresRepeated(graph: Graph): Graph {
  if (!graph.inputs.some(isCode)) return graph;
  const [inputs, outputs] = [new Set(graph.inputs), new Set(graph.outputs)];
  const readers = readersOf(graph);
  const again = new Map<Value, Value>();
  const before = new Map<Node, Node[]>();
  for (const node of graph.nodes) {
    const [output] = node.outputs as [Value];
    const form = formOf(node.op);
    if (form?.kind !== 'map' || !form.isCheap || outputs.has(output)) continue;
    const all = readers.get(output) ?? [];
    const first = all.find((reader) => !isReduction(reader));
    if (!node.inputs.every((input) => inputs.has(input)) || first === undefined || !all.some(isReduction))
      continue;
    again.set(output, newValue(output));
    before.set(first, [...(before.get(first) ?? []), { ...node, outputs: [again.get(output)!] }]);
  }
  const nodes = graph.nodes.flatMap((node) => [
    ...(before.get(node) ?? []),
    isReduction(node) ? node : { ...node, inputs: node.inputs.map((input) => again.get(input) ?? input) },
  ]);
  return { ...graph, nodes };
}
