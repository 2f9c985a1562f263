/** @file Products by the same matrix as one product, of the rows of all: the matrix is then read from memory once. */
import { type Graph, type Node, newValue, producers, type Value } from '../program/ir.js';
import { inferOutputs } from '../rules/index.js';

/** Whether a node multiplies the rows of its left operand, one by one, by a matrix. */
const multipliesRows = ({ op, inputs, attrs }: Node): boolean =>
  op === 'BatchMatMul' && !attrs.transposeA && inputs.every(({ shape }) => shape.length === 2);

const keyOf = ({ inputs, attrs }: Node): string => JSON.stringify([inputs[1]!.id, attrs]);

/** Nodes of which some are joined: one of a group runs once all that any of the group reads is there. */
class Joins {
  readonly #made: ReadonlyMap<Value, Node>;
  readonly #groups = new Map<Node, Node[]>();

  constructor(graph: Graph) {
    this.#made = producers(graph);
  }

  /** A node and those that are joined with it, in the order of the graph. */
  groupOf(node: Node): readonly Node[] {
    return this.#groups.get(node) ?? [node];
  }

  /** The nodes whose outputs a group reads. */
  before(group: readonly Node[]): Node[] {
    return group.flatMap(({ inputs }) => inputs.flatMap((input) => this.#made.get(input) ?? []));
  }

  /** Joins a node to a group, unless one of them needs the results of the other. */
  join(node: Node, group: readonly Node[]): boolean {
    if (this.#needs([node], group[0]!) || this.#needs(group, node)) return false;
    const joined = [...group, node];
    for (const each of joined) this.#groups.set(each, joined);
    return true;
  }

  #needs(group: readonly Node[], wanted: Node): boolean {
    const open = this.before(group);
    const seen = new Set<Node>();
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (seen.has(node)) continue;
      const own = this.groupOf(node);
      if (own.includes(wanted)) return true;
      for (const each of own) seen.add(each);
      open.push(...this.before(own));
    }
    return false;
  }
}

/** The product of the rows of all nodes, and the rows of each under its output's value. */
function joinedProduct(group: readonly Node[]): Node[] {
  const [{ inputs, attrs, scope }] = group as [Node];
  const make = (op: string, from: readonly Value[], of: Node['attrs'], output?: Value): Node => ({
    ...{ op, inputs: from, attrs: of, scope },
    outputs: [output ?? newValue(inferOutputs(op, from, of)[0]!)],
  });
  const rows = make(
    'Concat',
    group.map((node) => node.inputs[0]!),
    { axis: 0 },
  );
  const product = make('BatchMatMul', [rows.outputs[0]!, inputs[1]!], attrs);
  let begin = 0;
  const parts = group.map(({ outputs: [output] }) => {
    const size = output!.shape;
    const part = make('Slice', product.outputs, { begin: [begin, 0], size }, output);
    begin += size[0]!;
    return part;
  });
  return [rows, product, ...parts];
}

/** Joins products by the same matrix of which none needs the results of another. No element of a result changes. */
export function joinRows(graph: Graph): Graph {
  const joins = new Joins(graph);
  const open = new Map<string, Node>();
  for (const node of graph.nodes.filter(multipliesRows)) {
    const key = keyOf(node);
    const first = open.get(key);
    if (first === undefined || !joins.join(node, joins.groupOf(first))) open.set(key, node);
  }
  const nodes: Node[] = [];
  const placed = new Set<Node>();
  // Joined, a product may need what comes behind it in the graph.
  const place = (start: Node): void => {
    const open = [start];
    for (let node = open.at(-1); node !== undefined; node = open.at(-1)) {
      const group = joins.groupOf(node);
      const missing = placed.has(node) ? [] : joins.before(group).filter((each) => !placed.has(each));
      if (missing.length > 0) {
        open.push(...missing);
        continue;
      }
      open.pop();
      if (placed.has(node)) continue;
      for (const each of group) placed.add(each);
      nodes.push(...(group.length > 1 ? joinedProduct(group) : group));
    }
  };
  for (const node of graph.nodes) place(node);
  return { ...graph, nodes };
}
