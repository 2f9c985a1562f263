/** @file Elimination of empty tensors: afterwards no node reads or makes one, so that lowerings never meet size 0. */
import { type Graph, type Node, newValue, rewrite, type Value } from '../program/ir.js';
import { CompilerError, formatSpec, newHostArray } from '../program/tensors.js';
import { compositeOf, ruleOf } from '../rules/index.js';
import { expandComposites } from './expand.js';

/** Whether a tensor has no elements. */
export const isEmpty = ({ shape }: Value): boolean => shape.includes(0);

const touchesEmpty = ({ inputs, outputs }: Node): boolean => inputs.some(isEmpty) || outputs.some(isEmpty);

const emptyConstant = (value: Value): Value => newValue(value, { data: newHostArray(value.dtype, 0) });

/** Replacements for the outputs of a node that reads or makes empty tensors. */
function replace(node: Node, emit: (node: Node) => void): readonly Value[] {
  const { op, inputs, outputs, attrs } = node;
  const [out] = outputs;
  if (outputs.every(isEmpty)) return outputs.map(emptyConstant);
  if (op === 'SplitV') {
    const parts = outputs.filter((output) => !isEmpty(output));
    const sizes = (attrs.sizes as readonly number[]).filter((size) => size > 0);
    if (parts.length > 1) emit({ ...node, outputs: parts, attrs: { ...attrs, sizes } });
    const standsFor = (part: Value): Value => (parts.length > 1 ? part : inputs[0]!);
    return outputs.map((output) => (isEmpty(output) ? emptyConstant(output) : standsFor(output)));
  }
  if (op === 'Concat') {
    const parts = inputs.filter((input) => !isEmpty(input));
    if (parts.length === 1) return parts;
    emit({ ...node, inputs: parts });
    return outputs;
  }
  const value = ruleOf(op).ofEmpty?.(out!.dtype, attrs);
  if (value === undefined || outputs.length > 1)
    throw new CompilerError(
      `${op} of ${inputs.map(formatSpec).join(', ')} cannot be compiled: it reads an empty tensor.`,
    );
  const { shape, dtype } = out!;
  emit({ ...node, op: 'Fill', inputs: [], attrs: { shape, dtype, value } });
  return outputs;
}

/**
 * Removes nodes that read or make empty tensors. Empty results become constants; results over empty operands become the
 * identity of their operation. The program's inputs and outputs may still be empty.
 */
export function dropEmpties(graph: Graph): Graph {
  if (!graph.nodes.some(touchesEmpty)) return graph;
  // A composite may have both empty and other results; tfjs's kernels have one result.
  const isKept = (node: Node): boolean =>
    !touchesEmpty(node) || ruleOf(node.op).ofEmpty !== undefined || node.outputs.every(isEmpty);
  const plain = expandComposites(graph, (node) => compositeOf(node.op) === undefined || isKept(node));
  return rewrite(plain, (node, emit) => {
    if (touchesEmpty(node)) return replace(node, emit);
    emit(node);
    return node.outputs;
  });
}
