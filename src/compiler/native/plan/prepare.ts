/** @file Graph preparation for the native lowering: expands operations without a form of their own. */

import { GRADIENT_WEIGHTS } from '../../ops/attentionForms.js';
import {
  dropEmpties,
  eliminateDeadCode,
  expandComposites,
  foldConstants,
  mergeProducts,
  simplify,
} from '../../passes/index.js';
import {
  type Graph,
  mapBodies,
  type Node,
  newValue,
  producers,
  rewrite,
  type Value,
} from '../../program/ir.js';
import type { Surroundings } from '../../rules/deviceForm.js';
import { expandOps } from './expansions.js';
import { formOf } from './forms.js';

/** The composites that stay whole: those whose form says so of them where they stand. */
function keepsWhole(graph: Graph): (node: Node) => boolean {
  const made = producers(graph);
  const readers = new Map<Value, Node[]>();
  for (const node of graph.nodes)
    for (const input of node.inputs) readers.set(input, [...(readers.get(input) ?? []), node]);
  const outputs = new Set(graph.outputs);
  const around: Surroundings = {
    makerOf: (value) => made.get(value),
    readersOf: (value) => readers.get(value) ?? [],
    isOutput: (value) => outputs.has(value),
  };
  return (node) => {
    const form = formOf(node.op);
    return form !== undefined && (form.keeps?.(node, around) ?? true);
  };
}

/**
 * Replaces the weights [B, N, T, S] by the logarithms of the sums of exponentials [B, N, T], from which the gradient
 * recomputes them.
 */
function withLogSums(graph: Graph): Graph {
  const sums = new Map<Value, Value>();
  const masks = new Map<Value, readonly Value[]>();
  return rewrite(graph, (node, push) => {
    if (node.op === 'Attention') {
      const [out, weights] = node.outputs;
      const logSums = newValue({ shape: weights!.shape.slice(0, 3), dtype: 'float32' });
      sums.set(weights!, logSums);
      masks.set(weights!, node.inputs.slice(3));
      push({ ...node, outputs: [out!, logSums] });
      return node.outputs;
    }
    // Of attention that stays whole, only gradients read the weights.
    const weights = node.inputs[GRADIENT_WEIGHTS]!;
    const inputs = (): Value[] => [
      ...node.inputs.slice(0, GRADIENT_WEIGHTS),
      sums.get(weights)!,
      ...masks.get(weights)!,
    ];
    push(sums.has(weights) ? { ...node, inputs: inputs() } : node);
    return node.outputs;
  });
}

/**
 * Prepares an optimized graph. Common subexpressions of the forward and backward passes are not merged again: values
 * that are cheap to recompute would have to be stored.
 */
export function prepareForNative(graph: Graph): Graph {
  const keep = keepsWhole(graph);
  let current = dropEmpties(eliminateDeadCode(expandComposites(graph, keep)));
  current = mergeProducts(simplify(foldConstants(current)));
  return mapBodies(eliminateDeadCode(withLogSums(expandOps(current))), prepareForNative);
}
