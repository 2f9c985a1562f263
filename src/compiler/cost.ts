/** @file Cost analysis: FLOPs, bytes and peak memory of a program, without running it. */
import type { Graph, Value } from './graph.js';
import { optimize } from './passes/index.js';
import { traceProgram } from './program.js';
import { ruleOf } from './rules/index.js';
import { byteSize, type TensorSpec, type Tree } from './types.js';

/** Costs of one operation's nodes together. */
export interface OpCost {
  readonly count: number;
  readonly flops: number;
  /** Bytes of all inputs and outputs. */
  readonly bytes: number;
}

/** Costs of a program. */
export interface Cost {
  /** Floating-point operations; a multiply-add counts as two. */
  readonly flops: number;
  /** Bytes that operations read and write, if each reads its inputs from memory and writes its outputs there. */
  readonly bytes: number;
  /** Most bytes alive at once, in program order; inputs, constants and outputs count throughout. */
  readonly peakMemory: number;
  readonly byOp: Readonly<Record<string, OpCost>>;
}

/** The costs of a graph as it stands. */
export function graphCost(graph: Graph): Cost {
  const byOp: Record<string, OpCost> = {};
  for (const { op, inputs, outputs, attrs } of graph.nodes) {
    const known = byOp[op] ?? { count: 0, flops: 0, bytes: 0 };
    const moved = [...inputs, ...outputs].reduce((sum, value) => sum + byteSize(value), 0);
    const flops = ruleOf(op).flops?.(inputs, outputs, attrs) ?? 0;
    byOp[op] = { count: known.count + 1, flops: known.flops + flops, bytes: known.bytes + moved };
  }
  const total = (pick: (cost: OpCost) => number): number =>
    Object.values(byOp).reduce((sum, cost) => sum + pick(cost), 0);
  return {
    flops: total((cost) => cost.flops),
    bytes: total((cost) => cost.bytes),
    peakMemory: peakMemory(graph),
    byOp,
  };
}

/** Walks the program with a counter of live bytes: a result lives from its node to its last reader. */
function peakMemory(graph: Graph): number {
  const lastReader = new Map<Value, number>();
  const pinned = new Set<Value>([...graph.inputs, ...graph.outputs]);
  graph.nodes.forEach(({ inputs }, i) => {
    for (const input of inputs) {
      lastReader.set(input, i);
      if (input.data) pinned.add(input);
    }
  });
  let live = 0;
  for (const value of pinned) live += byteSize(value);
  let peak = live;
  graph.nodes.forEach(({ inputs, outputs }, i) => {
    for (const output of outputs) if (!pinned.has(output)) live += byteSize(output);
    peak = Math.max(peak, live);
    const dying = new Set([...inputs, ...outputs]);
    for (const value of dying)
      if (!pinned.has(value) && (lastReader.get(value) ?? i) <= i) live -= byteSize(value);
  });
  return peak;
}

/** FLOPs, bytes and peak memory of `f` on arguments of these specs. Nothing is computed. */
export function costAnalysis(f: (...args: any[]) => Tree<any>, ...specs: Tree<TensorSpec>[]): Cost {
  return graphCost(optimize(traceProgram((inputs: any[]) => f(...inputs), specs).graph));
}
