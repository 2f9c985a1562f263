/** @file Constant folding. */
import { type Graph, newValue, rewrite, type Value } from '../program/ir.js';
import { type HostTensor, sizeOf } from '../program/tensors.js';
import { ruleOf } from '../rules/index.js';

/** Larger results are not folded: constants increase the program's size. */
const MAX_ELEMENTS = 1 << 20;

const hostTensor = (value: Value): HostTensor => ({
  shape: value.shape,
  dtype: value.dtype,
  data: value.data!,
});

/** Replaces nodes over constants by their values. */
export function foldConstants(graph: Graph): Graph {
  return rewrite(graph, (node, emit) => {
    const { fold } = ruleOf(node.op);
    const foldable =
      fold &&
      node.inputs.every((input) => input.data) &&
      node.outputs.length === 1 &&
      sizeOf(node.outputs[0]!.shape) <= MAX_ELEMENTS;
    if (!foldable) {
      emit(node);
      return node.outputs;
    }
    const { data, shape, dtype } = fold(node.inputs.map(hostTensor), node.attrs);
    return [newValue({ shape, dtype }, { data })];
  });
}
