/** @file Intermediate representation: values, nodes in topological order, and the walk that passes share. */
import type { HostArray, TensorSpec } from './tensors.js';

/** Canonical attributes of a node: plain data, so that nodes can be compared and printed. */
export type Attrs = Readonly<Record<string, number | boolean | string | readonly number[]>>;

/** An attribute that is a list of numbers. */
export const ints = (attr: Attrs[string] | undefined): readonly number[] => attr as readonly number[];

/**
 * A tensor of a program: an input (`name` is set), a constant (`data` is set) or the result of a node. Values are
 * compared by identity.
 */
export interface Value extends TensorSpec {
  readonly id: number;
  /** Set for program inputs. */
  readonly name?: string;
  /** Set for constants. */
  readonly data?: HostArray;
}

/** An operation of a graph. `op` is a key of the rule table, whose entry defines the numbers of inputs and outputs. */
export interface Node {
  readonly op: string;
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly attrs: Attrs;
  /** Path of the layer whose call made this node; '' outside any. */
  readonly scope: string;
  /** The call that made it or, in a gradient, the call that is differentiated; set where calls are kept. */
  readonly call?: Error;
  /** The body of a loop, or the branches of a choice. Bodies read their own inputs, their own values and constants. */
  readonly bodies?: readonly Graph[];
}

/** A program: nodes in an order in which each comes after the nodes whose outputs it reads. */
export interface Graph {
  readonly inputs: readonly Value[];
  readonly outputs: readonly Value[];
  readonly nodes: readonly Node[];
}

/** Concatenates two graphs, with the inputs and outputs of both. */
export const joinGraphs = (first: Graph, second: Graph): Graph => ({
  inputs: [...first.inputs, ...second.inputs],
  outputs: [...first.outputs, ...second.outputs],
  nodes: [...first.nodes, ...second.nodes],
});

let nextId = 0;

/** A new value; ids increase in order of creation, across all graphs. */
export function newValue(
  { shape, dtype, storage }: TensorSpec,
  extra?: { name?: string; data?: HostArray },
): Value {
  const id = nextId++;
  const value = storage === undefined ? { id, shape, dtype } : { id, shape, dtype, storage };
  return extra === undefined ? value : { ...value, ...extra };
}

/** A graph, and the bodies of its nodes, with each value mapped. */
export function mapValues(graph: Graph, map: (value: Value) => Value): Graph {
  const all = (values: readonly Value[]): Value[] => values.map((value) => map(value));
  return {
    inputs: all(graph.inputs),
    nodes: graph.nodes.map((node) => ({
      ...node,
      inputs: all(node.inputs),
      outputs: all(node.outputs),
      ...(node.bodies && { bodies: node.bodies.map((body) => mapValues(body, map)) }),
    })),
    outputs: all(graph.outputs),
  };
}

/** A copy of a graph with values of its own. */
export function copyGraph(graph: Graph): Graph {
  const values = new Map<Value, Value>();
  return mapValues(graph, (value) => {
    const known = values.get(value);
    if (known !== undefined || value.data !== undefined) return known ?? value;
    const made = newValue(value);
    values.set(value, made);
    return made;
  });
}

/** The graph with each body of its nodes replaced. */
export function mapBodies(graph: Graph, map: (body: Graph) => Graph): Graph {
  if (!graph.nodes.some(({ bodies }) => bodies)) return graph;
  const nodes = graph.nodes.map((node) =>
    node.bodies === undefined ? node : { ...node, bodies: node.bodies.map(map) },
  );
  return { ...graph, nodes };
}

/** The node behind each value; inputs and constants are absent. */
export function producers(graph: Graph): Map<Value, Node> {
  const map = new Map<Value, Node>();
  for (const node of graph.nodes) for (const output of node.outputs) map.set(output, node);
  return map;
}

/** Number of reads of each value, by nodes and as a program output. */
export function useCounts(graph: Graph): Map<Value, number> {
  const counts = new Map<Value, number>();
  const count = (value: Value) => counts.set(value, (counts.get(value) ?? 0) + 1);
  for (const node of graph.nodes) node.inputs.forEach(count);
  graph.outputs.forEach(count);
  return counts;
}

/**
 * Rebuilds a graph node by node; every pass is a `visit` function. It gets a node whose inputs are already replaced,
 * and returns the values that stand for its outputs. It may add any number of nodes through `emit`.
 */
export function rewrite(
  graph: Graph,
  visit: (node: Node, emit: (node: Node) => void) => readonly Value[],
): Graph {
  const replaced = new Map<Value, Value>();
  const current = (value: Value): Value => replaced.get(value) ?? value;
  const nodes: Node[] = [];
  const emit = (node: Node) => void nodes.push(node);
  for (const node of graph.nodes) {
    const inputs = node.inputs.some((value) => replaced.has(value)) ? node.inputs.map(current) : node.inputs;
    const results = visit(inputs === node.inputs ? node : { ...node, inputs }, emit);
    node.outputs.forEach((output, i) => {
      const result = results[i]!;
      if (result !== output) replaced.set(output, result);
    });
  }
  return { inputs: graph.inputs, outputs: graph.outputs.map(current), nodes };
}
