/** @file Residuals: values of a loop's turns that are stacked for the gradient, so that it need not compute them again. */

import { isKept } from '../passes/rematerialize.js';
import { type Graph, type Node, newValue, producers, type Value } from '../program/ir.js';
import { sizeOf } from '../program/tensors.js';
import type { Mark, Region } from '../trace/regions.js';

/** Operations that only place elements: their operands are stacked instead. */
const VIEWS: ReadonlySet<string> = new Set([
  ...['Identity', 'Reshape', 'ExpandDims', 'Transpose', 'BroadcastTo'],
  ...['Slice', 'StridedSlice', 'Reverse', 'SplitV', 'Unpack'],
]);

/** A body and its checkpoints. */
export interface MarkedBody extends Graph {
  readonly marks: ReadonlyMap<Node, Mark>;
  readonly names: ReadonlyMap<Value, string>;
  /** The region that the whole loop is in. */
  readonly region: Region | null;
}

/**
 * The values that a turn may save for its gradient: those that differ between turns, but for what checkpointed functions within
 * the body compute again. What such a function gives to others is saved.
 *
 * @param turning how many inputs, the first ones, differ between turns
 */
export function savableValues(
  { inputs, nodes, outputs, marks, names, region: loop }: MarkedBody,
  turning: number,
): Value[] {
  const varying = new Set<Value>(inputs.slice(0, turning));
  for (const node of nodes)
    if (node.inputs.some((input) => varying.has(input)))
      for (const output of node.outputs) varying.add(output);
  const regionsOf = (node: Node): Region[] => {
    const regions: Region[] = [];
    for (let each = marks.get(node)?.region ?? null; each !== null && each !== loop; each = each.parent)
      regions.push(each);
    return regions;
  };
  const isDropped = (node: Node, region: Region): boolean => !isKept(region.policy, node, names);
  const made = producers({ inputs, outputs, nodes });
  // Values that leave a region, by the regions that they leave.
  const leaving = new Map<Value, Set<Region>>();
  const leave = (value: Value, reader: readonly Region[]): void => {
    const maker = made.get(value);
    const left = maker === undefined ? [] : regionsOf(maker).filter((each) => !reader.includes(each));
    if (left.length > 0) leaving.set(value, new Set([...(leaving.get(value) ?? []), ...left]));
  };
  for (const node of nodes) for (const input of node.inputs) leave(input, regionsOf(node));
  for (const output of outputs) leave(output, []);
  const saved: Value[] = [];
  for (const node of nodes) {
    if (VIEWS.has(node.op)) continue;
    const dropped = regionsOf(node).filter((each) => isDropped(node, each));
    for (const output of node.outputs)
      if (
        varying.has(output) &&
        sizeOf(output.shape) > 0 &&
        dropped.every((each) => leaving.get(output)?.has(each))
      )
        saved.push(output);
  }
  return saved;
}

/**
 * A gradient's body that reads saved values of the turn instead of computing them, where it has a use for them.
 *
 * @param graph the turn and then its gradient.
 * @param savable values of the turn.
 * @param at where the inputs that stand for saved values are put.
 * @returns the body, and the values that it reads.
 */
export function withResiduals(
  graph: Graph,
  savable: ReadonlySet<Value>,
  at: number,
): { readonly graph: Graph; readonly residuals: readonly Value[] } {
  if (savable.size === 0) return { graph, residuals: [] };
  const standIns = new Map<Value, Value>();
  const standIn = (value: Value): Value => {
    if (!savable.has(value)) return value;
    const known = standIns.get(value) ?? newValue(value);
    standIns.set(value, known);
    return known;
  };
  const outputs = graph.outputs.map(standIn);
  const live = new Set(outputs);
  const nodes: Node[] = [];
  for (const node of [...graph.nodes].reverse()) {
    if (!node.outputs.some((output) => live.has(output))) continue;
    const inputs = node.inputs.map(standIn);
    for (const input of inputs) live.add(input);
    nodes.push({ ...node, inputs });
  }
  const residuals = [...standIns.keys()];
  const inputs = [...graph.inputs];
  inputs.splice(at, 0, ...residuals.map((value) => standIns.get(value)!));
  return { graph: { inputs, outputs, nodes: nodes.reverse() }, residuals };
}
