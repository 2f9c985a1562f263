/** @file Fuses matrix products into the sums that read them, for lowerings whose product can start from a matrix. */
import '../ops/matMulAdd.js';
import { type Graph, type Node, newValue, producers, rewrite, useCounts, type Value } from '../graph.js';
import { type Shape, sameShape } from '../types.js';

/** A product of two matrices that only one node reads, maybe through a reshape. */
function soleProduct(value: Value, made: Map<Value, Node>, uses: Map<Value, number>): Node | null {
  const node = made.get(value);
  if (node === undefined || uses.get(value) !== 1 || value.dtype !== 'float32') return null;
  if (node.op === 'Reshape') return soleProduct(node.inputs[0]!, made, uses);
  const isMatrix = (x: Value): boolean => x.shape.length === 2;
  return node.op === 'BatchMatMul' && node.inputs.every(isMatrix) ? node : null;
}

/** The graph with `Add(product, c)` as one MatMulAdd; a reshape between them moves behind it. */
export function fuseMatMulAdd(graph: Graph): Graph {
  const made = producers(graph);
  const uses = useCounts(graph);
  return rewrite(graph, (node, emit) => {
    const out = node.outputs[0]!;
    const fits = (value: Value): boolean => sameShape(value.shape, out.shape);
    // The second operand first: of two products, the one that comes later starts from the other.
    const side =
      node.op === 'Add' && node.inputs.every(fits)
        ? [1, 0].find((i) => soleProduct(node.inputs[i]!, made, uses))
        : undefined;
    if (side === undefined) {
      emit(node);
      // With the inputs as they are by now.
      made.set(out, node);
      return node.outputs;
    }
    const product = soleProduct(node.inputs[side]!, made, uses)!;
    const { shape } = product.outputs[0]!;
    const add = (op: string, inputs: readonly Value[], to: Shape, attrs: Node['attrs']): Value => {
      const output = newValue({ shape: to, dtype: 'float32' });
      emit({ op, inputs, outputs: [output], attrs, scope: node.scope });
      return output;
    };
    const reshaped = (value: Value, to: Shape): Value =>
      sameShape(value.shape, to) ? value : add('Reshape', [value], to, { shape: to });
    const inputs = [...product.inputs, reshaped(node.inputs[1 - side]!, shape)];
    return [reshaped(add('MatMulAdd', inputs, shape, product.attrs), out.shape)];
  });
}
