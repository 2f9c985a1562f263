/** @file Loops and choices without the inputs, carries and results that nothing needs. */
import type { Graph, Node, Value } from '../program/ir.js';

/** Numbers of the elements that pass. */
const numbersOf = <T>(values: readonly T[], passes: (value: T, i: number) => boolean): number[] =>
  [...values.keys()].filter((i) => passes(values[i]!, i));

/** The inputs of a body that its outputs with these numbers depend on, and the body without the rest. */
function reduced(body: Graph, outputs: readonly number[], clean: (graph: Graph) => Graph) {
  const graph = clean({ ...body, outputs: outputs.map((i) => body.outputs[i]!) });
  const read = new Set([...graph.nodes.flatMap(({ inputs }) => inputs), ...graph.outputs]);
  return { graph, reads: (i: number): boolean => read.has(body.inputs[i]!) };
}

/** A loop: a carry is needed where its last value is, or where what is needed reads it in a later turn. */
function prunedScan(node: Node, live: ReadonlySet<Value>, clean: (graph: Graph) => Graph): Node {
  const [body] = node.bodies as [Graph];
  const { carries, xs } = node.attrs as { carries: number; xs: number };
  let kept = numbersOf(node.outputs, (output) => live.has(output));
  for (;;) {
    const { graph, reads } = reduced(body, kept, clean);
    const missing = numbersOf(node.outputs.slice(0, carries), (_, i) => reads(i) && !kept.includes(i));
    if (missing.length > 0) {
      kept = [...kept, ...missing].sort((a, b) => a - b);
      continue;
    }
    // The body makes a kept carry from itself where nothing reads it.
    const inputs = numbersOf(node.inputs, (_, i) => (i < carries ? kept.includes(i) : reads(i)));
    const isXs = (i: number): boolean => i >= carries && i < carries + xs;
    return {
      ...node,
      inputs: inputs.map((i) => node.inputs[i]!),
      outputs: kept.map((i) => node.outputs[i]!),
      attrs: {
        ...node.attrs,
        carries: kept.filter((i) => i < carries).length,
        xs: inputs.filter(isXs).length,
      },
      bodies: [{ ...graph, inputs: inputs.map((i) => body.inputs[i]!) }],
    };
  }
}

function prunedCond(node: Node, live: ReadonlySet<Value>, clean: (graph: Graph) => Graph): Node {
  const kept = numbersOf(node.outputs, (output) => live.has(output));
  const branches = node.bodies!.map((body) => reduced(body, kept, clean));
  const [predicate, ...operands] = node.inputs;
  const inputs = numbersOf(operands, (_, i) => branches.some(({ reads }) => reads(i)));
  return {
    ...node,
    inputs: [predicate!, ...inputs.map((i) => operands[i]!)],
    outputs: kept.map((i) => node.outputs[i]!),
    bodies: branches.map(({ graph }, k) => ({
      ...graph,
      inputs: inputs.map((i) => node.bodies![k]!.inputs[i]!),
    })),
  };
}

/** A node with bodies, without what none of the live values depends on; `clean` removes dead code of bodies. */
export const pruned = (node: Node, live: ReadonlySet<Value>, clean: (graph: Graph) => Graph): Node =>
  (node.op === 'Scan' ? prunedScan : prunedCond)(node, live, clean);
