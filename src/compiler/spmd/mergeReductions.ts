/** @file Fewer sums over ranks: terms that only their sum reads are added on each rank first. */

import { attrsKey } from '../passes/cse.js';
import type { GraphReader } from '../passes/patterns.js';
import { applyRules, type Rule } from '../passes/rewriting.js';
import type { Graph, Node, Value } from '../program/ir.js';

/** The reduction that makes a value which nothing else reads. */
function reductionOf(value: Value, graph: GraphReader): Node | undefined {
  const node = graph.producer(value);
  return node?.op === 'AllReduce' && graph.uses(value) === 1 ? node : undefined;
}

/** A view of the operand, in place of a view of the result: so reductions meet. */
const behindViews: Rule = (root, graph, make) => {
  if (root.op !== 'Reshape' && root.op !== 'Transpose') return null;
  const reduction = reductionOf(root.inputs[0]!, graph);
  if (reduction === undefined) return null;
  return make('AllReduce', [make(root.op, reduction.inputs, root.attrs)], reduction.attrs, reduction.scope);
};

/** The sum over ranks of the sum of terms, in place of the sum of their sums over ranks. */
const behindSums: Rule = (root, graph, make) => {
  if (root.op !== 'Add' && root.op !== 'AddN') return null;
  const [shape] = root.outputs.map((output) => output.shape);
  const reductions = root.inputs.map((input) => reductionOf(input, graph));
  const [first] = reductions;
  const areAlike = reductions.every(
    (each) =>
      each !== undefined &&
      each.attrs.reduction === 'sum' &&
      attrsKey(each.attrs) === attrsKey(first!.attrs) &&
      each.outputs[0]!.shape.length === shape!.length &&
      each.outputs[0]!.shape.every((size, i) => size === shape![i]),
  );
  if (!areAlike) return null;
  const terms = reductions.map((each) => each!.inputs[0]!);
  return make('AllReduce', [make(root.op, terms, root.attrs)], first!.attrs, first!.scope);
};

/** The graph with sums over ranks as late and as few as their readers allow. */
export const mergeReductions = (graph: Graph): Graph => applyRules([behindViews, behindSums], graph);
