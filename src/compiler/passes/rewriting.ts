/** @file Rewrite tables: a pattern, and the replacement of a matching value. */
import {
  type Attrs,
  type Graph,
  type Node,
  newValue,
  producers,
  rewrite,
  useCounts,
  type Value,
} from '../program/ir.js';
import { type Shape, sameShape, type TensorSpec } from '../program/tensors.js';
import { inferOutputs } from '../rules/index.js';
import { eliminateDeadCode } from './dce.js';
import type { GraphReader, Pattern } from './patterns.js';

/** Makes a node with one output; its scope is by default that of the replaced value. */
export type Make = (op: string, inputs: readonly Value[], attrs?: Attrs, scope?: string) => Value;

/** Returns the replacement of a node's only output, or null if the rule does not apply. */
export type Rule = (root: Node, graph: GraphReader, make: Make) => Value | null;

/** Reshapes a value. */
export const reshaped = (value: Value, shape: Shape, make: Make): Value =>
  sameShape(value.shape, shape) ? value : make('Reshape', [value], { shape });

const isSame = (a: TensorSpec, b: TensorSpec): boolean => a.dtype === b.dtype && sameShape(a.shape, b.shape);

/**
 * A rule that replaces values that match `pattern`. Replacements with another shape or dtype are rejected here, so that
 * rules need not check.
 *
 * @param replace returns the replacement, given the matched values, the node (`root`) and its output (`out`); false if
 *   the rule does not apply.
 */
export const rule =
  <Found>(
    pattern: Pattern<Found>,
    replace: (found: Found & { root: Node; out: Value }, make: Make) => Value | false,
  ): Rule =>
  (root, graph, make) => {
    const out = root.outputs[0]!;
    for (const found of pattern(out, graph)) {
      const value = replace({ ...found, root, out }, make);
      if (value !== false && isSame(value, out)) return value;
    }
    return null;
  };

/** One walk, which replaces each node at most once. Returns the same graph if no rule applies. */
function walk(rules: readonly Rule[], graph: Graph): Graph {
  const made = producers(graph);
  // Exact at first; later, values that also stand for others may count too many.
  const counts = useCounts(graph);
  const reader: GraphReader = {
    producer: (value) => made.get(value),
    uses: (value) => counts.get(value) ?? 1,
  };
  let changed = false;
  const result = rewrite(graph, (root, emit) => {
    const drafts = new Map<Value, Node>();
    const make: Make = (op, inputs, attrs = {}, scope = root.scope) => {
      const output = newValue(inferOutputs(op, inputs, attrs)[0]!);
      drafts.set(output, { op, inputs, outputs: [output], attrs, scope });
      return output;
    };
    const add = (node: Node): void => {
      for (const output of node.outputs) made.set(output, node);
      emit(node);
    };
    const settle = (value: Value): void => {
      const draft = drafts.get(value);
      if (draft === undefined) return;
      drafts.delete(value);
      draft.inputs.forEach(settle);
      add(draft);
    };
    // Its inputs may have been replaced.
    for (const output of root.outputs) made.set(output, root);
    const [out] = root.outputs;
    for (const apply of root.outputs.length === 1 ? rules : []) {
      const value = apply(root, reader, make);
      if (value === null) continue;
      changed = true;
      settle(value);
      const read = root.inputs.includes(value) ? 1 : 0;
      counts.set(value, (counts.get(value) ?? 0) - read + (counts.get(out!) ?? 0));
      return [value];
    }
    add(root);
    return root.outputs;
  });
  return changed ? eliminateDeadCode(result) : graph;
}

/** Applies the first matching rule everywhere, until none matches. */
export function applyRules(rules: readonly Rule[], graph: Graph): Graph {
  for (let current = graph; ; ) {
    const next = walk(rules, current);
    if (next === current) return current;
    current = next;
  }
}
