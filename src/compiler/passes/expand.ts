/** @file Expansion of composites that a lowering does not keep. */
import '../ops/operations.js';
import { type Graph, type Node, newValue, rewrite, type Value } from '../program/ir.js';
import { precisionOf, runInPrecision } from '../program/precision.js';
import { compositeOf } from '../rules/index.js';
import type * as tf from '../tfjs/tfjs.js';
import { withScope } from '../trace/scopes.js';
import { traceGraph } from '../trace/tracing.js';
import { attrsKey } from './cse.js';

/** A composite's decomposition as a graph with the node's inputs. */
function traceDecomposition(node: Node): Graph {
  const inputs = node.inputs.map((spec, i) => ({ name: String(i), spec }));
  const decompose = (tensors: readonly tf.Tensor[]) => compositeOf(node.op)!.decompose(tensors, node.attrs);
  return traceGraph(inputs, (tensors) =>
    withScope(node.scope, () => runInPrecision(precisionOf(node.attrs), () => decompose(tensors))),
  );
}

/** Cache of decompositions: layers of one kind share theirs, and tracing dominates the cost. */
class Decompositions {
  private readonly traced = new Map<string, Graph>();

  of(node: Node): Graph {
    const specs = node.inputs.map(({ shape, dtype }) => [dtype, shape]);
    const key = JSON.stringify([node.op, attrsKey(node.attrs), specs]);
    const known = this.traced.get(key) ?? traceDecomposition(node);
    this.traced.set(key, known);
    return known;
  }
}

/** Emits a decomposition in place of a node, with fresh values; returns the replacements of the node's outputs. */
function instantiate(body: Graph, { inputs, scope }: Node, emit: (node: Node) => void): readonly Value[] {
  const values = new Map<Value, Value>(body.inputs.map((input, i) => [input, inputs[i]!]));
  const current = (value: Value): Value => values.get(value) ?? value;
  for (const inner of body.nodes) {
    const outputs = inner.outputs.map((output) => newValue(output));
    emit({ ...inner, scope, inputs: inner.inputs.map(current), outputs });
    inner.outputs.forEach((output, i) => {
      values.set(output, outputs[i]!);
    });
  }
  return body.outputs.map(current);
}

/** Expands composites, nested ones included, except where `keep` returns true. */
export function expandComposites(graph: Graph, keep: (node: Node) => boolean): Graph {
  const expandable = (node: Node): boolean => compositeOf(node.op) !== undefined && !keep(node);
  const decompositions = new Decompositions();
  let current = graph;
  while (current.nodes.some(expandable)) {
    current = rewrite(current, (node, emit) => {
      if (expandable(node)) return instantiate(decompositions.of(node), node, emit);
      emit(node);
      return node.outputs;
    });
  }
  return current;
}
