/** @file Static cost analysis: FLOPs, bytes and peak memory of a program. */

import { optimize } from '../passes/index.js';
import { ruleOf } from '../rules/index.js';
import { traceProgram } from '../trace/tracedProgram.js';
import type { Graph, Node, Value } from './ir.js';
import { DEFAULT_PRECISION, PRECISION_NAMES, type Precision, precisionOf } from './precision.js';
import { byteSize, type TensorSpec, type Tree } from './tensors.js';

/** Total cost of all nodes of one operation. */
interface OpCost {
  readonly count: number;
  readonly flops: number;
  /** Bytes of all inputs and outputs. */
  readonly bytes: number;
}

/** Costs of a program. */
export interface Cost {
  /** Floating-point operations; a multiply-add counts as two. */
  readonly flops: number;
  /** Those of matrix products, convolutions and attention over all pairs of queries and keys, as PaLM counts a model's. */
  readonly productFlops: number;
  /** Those of `productFlops` without the pairs outside of attention's window: half of causal ones. */
  readonly visibleFlops: number;
  /** Bytes read and written by operations, if each reads its inputs from memory and writes its outputs there. */
  readonly bytes: number;
  /** Peak bytes alive in program order; inputs, constants and outputs count throughout. */
  readonly peakMemory: number;
  readonly byOp: Readonly<Record<string, OpCost>>;
  /** The precision of most product FLOPs. */
  readonly precision: Precision;
}

/** Whether a node's results are its inputs' memory. */
export const isView = ({ op }: Node): boolean => ruleOf(op).isView === true;

/** FLOPs of one node. */
export function nodeFlops({ op, inputs, outputs, attrs }: Node): number {
  return ruleOf(op).flops?.(inputs, outputs, attrs) ?? 0;
}

/** FLOPs of a product without the keys that a window hides from queries. */
function visibleFlops(node: Node): number {
  const { device } = ruleOf(node.op);
  return (device?.kind === 'call' ? device.work?.(node.inputs, node.attrs) : undefined) ?? nodeFlops(node);
}

/** Whether a node is a matrix product or a convolution. */
export const isProduct = ({ op }: Node): boolean => ruleOf(op).isProduct === true;

/** A node, and how often a run executes it. */
interface Execution {
  readonly node: Node;
  readonly times: number;
}

/** The nodes of a graph and of the bodies that it repeats. Of two branches, the one with more FLOPs counts. */
export function executions({ nodes }: Graph, times = 1): Execution[] {
  return nodes.flatMap((node): Execution[] => {
    if (node.bodies === undefined) return [{ node, times }];
    const inner = node.bodies.map((body) => executions(body, times * Number(node.attrs.length ?? 1)));
    const flops = inner.map((all) => all.reduce((sum, { node, times }) => sum + times * nodeFlops(node), 0));
    return inner[flops.indexOf(Math.max(...flops))]!;
  });
}

/** The precision of most product FLOPs of a graph; MFU uses the peak of that precision. */
export function productPrecision(graph: Graph): Precision {
  const flops = new Map<Precision, number>();
  for (const { node, times } of executions(graph)) {
    if (!isProduct(node)) continue;
    const precision = precisionOf(node.attrs);
    flops.set(precision, (flops.get(precision) ?? 0) + times * nodeFlops(node));
  }
  const most = Math.max(...flops.values());
  return PRECISION_NAMES.find((name) => flops.get(name) === most) ?? DEFAULT_PRECISION;
}

/** Costs of a graph, without optimization. */
export function graphCost(graph: Graph): Cost {
  const byOp: Record<string, OpCost> = {};
  const run = executions(graph);
  const products = run.filter(({ node }) => isProduct(node));
  const flopsOf = (count: (node: Node) => number): number =>
    products.reduce((sum, { node, times }) => sum + times * count(node), 0);
  for (const { node, times } of run) {
    const { op, inputs, outputs } = node;
    const known = byOp[op] ?? { count: 0, flops: 0, bytes: 0 };
    const moved = isView(node) ? 0 : [...inputs, ...outputs].reduce((sum, value) => sum + byteSize(value), 0);
    byOp[op] = {
      count: known.count + times,
      flops: known.flops + times * nodeFlops(node),
      bytes: known.bytes + times * moved,
    };
  }
  const total = (pick: (cost: OpCost) => number): number =>
    Object.values(byOp).reduce((sum, cost) => sum + pick(cost), 0);
  return {
    flops: total((cost) => cost.flops),
    productFlops: flopsOf(nodeFlops),
    visibleFlops: flopsOf(visibleFlops),
    bytes: total((cost) => cost.bytes),
    peakMemory: peakMemory(graph),
    byOp,
    precision: productPrecision(graph),
  };
}

/** The value that owns each view's memory; values with memory of their own are absent. */
export function viewedValues(graph: Graph): Map<Value, Value> {
  const viewed = new Map<Value, Value>();
  for (const node of graph.nodes) {
    if (!isView(node)) continue;
    const { inputs, outputs } = node;
    outputs.forEach((output, i) => {
      viewed.set(output, viewed.get(inputs[i]!) ?? inputs[i]!);
    });
  }
  return viewed;
}

/**
 * Peak bytes alive in program order: a result lives from its node to its last reader; inputs, constants and outputs
 * live throughout. Linear time.
 *
 * @param elsewhere inputs and outputs in the caller's memory, which do not count.
 */
export function peakMemory(graph: Graph, elsewhere: Iterable<Value> = []): number {
  const viewed = viewedValues(graph);
  const memoryOf = (value: Value): Value => viewed.get(value) ?? value;
  const lastReader = new Map<Value, number>();
  const made = new Set(graph.nodes.flatMap(({ outputs }) => outputs));
  const pinned = new Set([...graph.inputs, ...graph.outputs].map(memoryOf));
  graph.nodes.forEach(({ inputs }, i) => {
    for (const input of inputs.map(memoryOf)) {
      lastReader.set(input, i);
      // Constants.
      if (!made.has(input)) pinned.add(input);
    }
  });
  const uncounted = new Set([...elsewhere].map(memoryOf));
  let live = 0;
  for (const value of pinned) if (!uncounted.has(value)) live += byteSize(value);
  let peak = live;
  const comesAndGoes = (value: Value): boolean => !pinned.has(value) && !viewed.has(value);
  graph.nodes.forEach(({ inputs, outputs, bodies = [] }, i) => {
    for (const output of outputs) if (comesAndGoes(output)) live += byteSize(output);
    const within = bodies.map((body) => peakMemory(body, body.inputs));
    peak = Math.max(peak, live + Math.max(0, ...within));
    const dying = new Set([...inputs.map(memoryOf), ...outputs]);
    for (const value of dying)
      if (comesAndGoes(value) && (lastReader.get(value) ?? i) <= i) live -= byteSize(value);
  });
  return peak;
}

/** FLOPs, bytes and peak memory of `f` on arguments of these specs; nothing is computed or allocated. */
export function costAnalysis(f: (...args: any[]) => Tree<any>, ...specs: Tree<TensorSpec>[]): Cost {
  const { graph } = traceProgram((inputs: any[]) => f(...inputs), specs, { abstract: true });
  return graphCost(optimize(graph));
}
