/** @file Dead-code elimination. */
import type { Graph, Node, Value } from '../ir.js';

/** The graph without nodes that no output depends on. */
export function eliminateDeadCode(graph: Graph): Graph {
  const live = new Set<Value>(graph.outputs);
  const nodes: Node[] = [];
  for (let i = graph.nodes.length - 1; i >= 0; i--) {
    const node = graph.nodes[i]!;
    if (!node.outputs.some((output) => live.has(output))) continue;
    for (const input of node.inputs) live.add(input);
    nodes.push(node);
  }
  return { ...graph, nodes: nodes.reverse() };
}
