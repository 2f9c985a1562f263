/** @file Running sums of loops, to which matrix products are added as they are multiplied. */
import { runningSums } from '../../passes/index.js';
import { type Graph, type Node, producers, useCounts } from '../../program/ir.js';
import { sameShape } from '../../program/tensors.js';

/** A loop whose running sums of matrix products are products that add to them. */
function withProductsAdding(loop: Node): Node {
  const [body] = loop.bodies as [Graph];
  const [made, uses] = [producers(body), useCounts(body)];
  const adding = new Map<Node, readonly Node[]>();
  for (const [i, node] of runningSums(loop)) {
    const carry = body.inputs[i]!;
    const added = node.inputs.find((input) => input !== carry)!;
    const product = node.op === 'Add' ? made.get(added) : undefined;
    const isMatrix = product?.op === 'BatchMatMul' && product.inputs.every(({ shape }) => shape.length === 2);
    if (!isMatrix || uses.get(added) !== 1 || added.dtype !== 'float32') continue;
    if (!sameShape(added.shape, carry.shape)) continue;
    const { outputs } = node;
    adding.set(node, [{ ...product, op: 'MatMulAdd', inputs: [...product.inputs, carry], outputs }]);
    adding.set(product, []);
  }
  return { ...loop, bodies: [{ ...body, nodes: body.nodes.flatMap((node) => adding.get(node) ?? node) }] };
}

/** Adds matrix products to running sums of loops as they are multiplied, so that they need no memory of their own. */
export const addProductsInPlace = (graph: Graph): Graph => ({
  ...graph,
  nodes: graph.nodes.map((node) => (node.op === 'Scan' ? withProductsAdding(node) : node)),
});
