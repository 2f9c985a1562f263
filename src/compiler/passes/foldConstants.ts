/** @file Constant folding: computes at compile time what depends on nothing. */
import { type Graph, newValue, rewrite, type Value } from '../ir.js';
import { ruleOf } from '../rules/index.js';
import { type HostTensor, sizeOf } from '../tensors.js';

/** Results larger than this stay computed: a constant takes room in the program. */
const MAX_ELEMENTS = 1 << 20;

const hostTensor = (value: Value): HostTensor => ({
  shape: value.shape,
  dtype: value.dtype,
  data: value.data!,
});

/** The graph with nodes over constants replaced by their values. */
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
