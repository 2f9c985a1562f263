/** @file Nodes of a TensorFlow graph that need values while it runs, and the border before them. */
import { CompilerError } from '../compiler/index.js';

/** A node as tfjs-converter reads it. */
export interface GraphNode {
  readonly name: string;
  readonly op: string;
  readonly category: string;
  readonly inputs: readonly GraphNode[];
  /** Names of its inputs, with the number of the output where it isn't the first: `split:1`. */
  readonly inputNames: readonly string[];
}

/** tfjs-converter's categories of nodes that await values: loops and branches, suppression of boxes, tables of strings. */
const AWAITING = new Set(['control', 'dynamic', 'hash_table']);

/** The node of a name such as `split:1`. @throws CompilerError if there is none. */
export function nodeOf(nodes: Readonly<Record<string, GraphNode>>, name: string): GraphNode {
  const node = nodes[name.split(':')[0]!];
  if (node === undefined)
    throw new CompilerError(
      `The graph model has no node '${name}'. Its outputs are in outputNodes, and its other nodes in model.json.`,
    );
  return node;
}

/**
 * Finds the nodes before `outputs` that await values.
 *
 * @param isGiven whether a node's value is an input or a weight.
 * @returns these nodes, and the names of values that are independent of them and needed by them, their dependents or
 * the caller.
 */
export function brokenAt(
  nodes: Readonly<Record<string, GraphNode>>,
  outputs: readonly string[],
  isGiven: (name: string) => boolean,
): { readonly breaks: readonly GraphNode[]; readonly frontier: readonly string[] } {
  const order = sorted(
    outputs.map((name) => nodeOf(nodes, name)),
    isGiven,
  );
  const breaks = order.filter(({ category }) => AWAITING.has(category));
  const broken = new Set<GraphNode>(breaks);
  const spread = (): void => {
    for (const node of order) if (node.inputs.some((input) => broken.has(input))) broken.add(node);
  };
  spread();
  // Loops lead back: a second round.
  spread();
  const needed = (): string[] => [
    ...new Set([...[...broken].flatMap(({ inputNames }) => inputNames), ...outputs]),
  ];
  const isFrontier = (name: string): boolean => {
    const node = nodeOf(nodes, name);
    return !broken.has(node) && !isGiven(node.name) && node.op !== 'Const';
  };
  // tfjs takes one value for a node, of the dtype that comparisons compare: nodes of which it wants others stay on its side.
  for (;;) {
    const refused = needed().filter(
      (name) => isFrontier(name) && (name.includes(':') || nodeOf(nodes, name).category === 'logical'),
    );
    if (refused.length === 0) break;
    for (const name of refused) broken.add(nodeOf(nodes, name));
  }
  return { breaks, frontier: breaks.length === 0 ? [] : needed().filter(isFrontier) };
}

/** The nodes that `ends` depend on, inputs first but for loops, without those that are given. */
function sorted(ends: readonly GraphNode[], isGiven: (name: string) => boolean): GraphNode[] {
  const [order, seen] = [[] as GraphNode[], new Set<GraphNode>()];
  const open = [...ends].reverse().map((node) => ({ node, next: 0 }));
  while (open.length > 0) {
    const top = open.at(-1)!;
    if (top.next === 0 && (seen.has(top.node) || isGiven(top.node.name))) {
      open.pop();
      continue;
    }
    seen.add(top.node);
    const input = top.node.inputs[top.next++];
    if (input === undefined) {
      order.push(top.node);
      open.pop();
    } else if (!seen.has(input)) open.push({ node: input, next: 0 });
  }
  return order;
}
