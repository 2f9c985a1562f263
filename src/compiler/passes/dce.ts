/** @file Dead-code elimination. */
import type { Graph, Node, Value } from '../program/ir.js';
import { pruned } from './pruneBodies.js';

/** The graph without nodes that no output depends on, and without parts of bodies that no live result depends on. */
export function eliminateDeadCode(graph: Graph): Graph {
  const live = new Set<Value>(graph.outputs);
  const nodes: Node[] = [];
  for (let i = graph.nodes.length - 1; i >= 0; i--) {
    const node = graph.nodes[i]!;
    if (!node.outputs.some((output) => live.has(output))) continue;
    const kept = node.bodies === undefined ? node : pruned(node, live, eliminateDeadCode);
    for (const input of kept.inputs) live.add(input);
    nodes.push(kept);
  }
  return { ...graph, nodes: nodes.reverse() };
}
