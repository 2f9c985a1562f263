/** @file Constant folding. */
import { type Graph, type Node, newValue, rewrite, type Value } from '../program/ir.js';
import { fillOf, type HostTensor, MAX_UNIFORM_ELEMENTS, newHostArray, sizeOf } from '../program/tensors.js';
import { ruleOf } from '../rules/index.js';

/** Larger results are not folded: constants increase the program's size. */
const MAX_ELEMENTS = 1 << 20;

/** Replaces nodes over constants, and over values that one number fills, by their values. */
export function foldConstants(graph: Graph): Graph {
  const filled = new Map<Value, number>();
  const isKnown = (value: Value): boolean =>
    value.data !== undefined || (filled.has(value) && sizeOf(value.shape) <= MAX_ELEMENTS);
  const hostTensor = (value: Value): HostTensor => {
    const { shape, dtype, data = newHostArray(dtype, sizeOf(shape)).fill(filled.get(value)!) } = value;
    return { shape, dtype, data };
  };
  return rewrite(graph, (node, emit) => {
    const { fold } = ruleOf(node.op);
    const [output, ...others] = node.outputs;
    const keep = (kept: Node): readonly Value[] => {
      emit(kept);
      if (kept.op === 'Fill') filled.set(output!, kept.attrs.value as number);
      return kept.outputs;
    };
    const foldable =
      fold && node.inputs.every(isKnown) && others.length === 0 && sizeOf(output!.shape) <= MAX_ELEMENTS;
    if (!foldable) return keep(node);
    const { data, shape, dtype } = fold(node.inputs.map(hostTensor), node.attrs);
    const value = data.length > MAX_UNIFORM_ELEMENTS ? fillOf(data) : null;
    if (value !== null) return keep({ ...node, op: 'Fill', inputs: [], attrs: { shape, dtype, value } });
    return [newValue({ shape, dtype }, { data })];
  });
}
