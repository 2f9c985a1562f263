/** @file Expansion: replaces composites that a lowering does not keep by their decompositions. */
import '../ops/convolution.js';
import '../ops/pooling.js';
import { type Graph, type Node, rewrite, type Value } from '../graph.js';
import { compositeOf } from '../ops/composite.js';
import { precisionOf, runInPrecision } from '../precision.js';
import type * as tf from '../tfjs.js';
import { traceGraph, withScope } from '../trace.js';

/** The decomposition of a composite as a graph, with the node's inputs as inputs. */
function traceDecomposition(node: Node): Graph {
  const inputs = node.inputs.map((spec, i) => ({ name: String(i), spec }));
  const decompose = (tensors: readonly tf.Tensor[]) => compositeOf(node.op)!.decompose(tensors, node.attrs);
  return traceGraph(inputs, (tensors) =>
    withScope(node.scope, () => runInPrecision(precisionOf(node.attrs), () => decompose(tensors))),
  );
}

/** The graph with every composite expanded, those too that come out of an expansion, except where `keep` says otherwise. */
export function expandComposites(graph: Graph, keep: (node: Node) => boolean): Graph {
  const expandable = (node: Node): boolean => compositeOf(node.op) !== undefined && !keep(node);
  let current = graph;
  while (current.nodes.some(expandable)) {
    current = rewrite(current, (node, emit) => {
      if (!expandable(node)) {
        emit(node);
        return node.outputs;
      }
      const body = traceDecomposition(node);
      const replaced = new Map<Value, Value>(body.inputs.map((input, i) => [input, node.inputs[i]!]));
      const current = (value: Value): Value => replaced.get(value) ?? value;
      for (const inner of body.nodes) emit({ ...inner, inputs: inner.inputs.map(current) });
      return body.outputs.map(current);
    });
  }
  return current;
}
