/** @file Running sums of loops: carries that turns do nothing with but add to, which stay in one place in memory. */
import { type Graph, type Node, producers, useCounts, type Value } from '../../program/ir.js';
import { sameShape } from '../../program/tensors.js';

/** The sum of a carry and what a turn adds to it. */
interface RunningSum {
  readonly node: Node;
  readonly carry: Value;
  readonly added: Value;
}

/** Running sums of a loop's body, by the number of the carry. */
function sumsOf(body: Graph, carries: number): Map<number, RunningSum> {
  const [made, uses] = [producers(body), useCounts(body)];
  const found = new Map<number, RunningSum>();
  for (let i = 0; i < carries; i++) {
    const [carry, next] = [body.inputs[i]!, body.outputs[i]!];
    const node = made.get(next);
    if (node === undefined || uses.get(carry) !== 1 || uses.get(next) !== 1) continue;
    const at = node.inputs.indexOf(carry);
    const isSum = node.op === 'MatMulAdd' ? at === 2 : node.op === 'Add' && at >= 0;
    if (isSum) found.set(i, { node, carry, added: node.inputs[node.op === 'Add' ? 1 - at : 0]! });
  }
  return found;
}

const carriesOf = ({ attrs }: Node): number => attrs.carries as number;

/** Numbers of a loop's carries that each turn adds to in place, reading an element no later than it writes it. */
export const runningSums = (node: Node): ReadonlySet<number> =>
  new Set(sumsOf(node.bodies![0]!, carriesOf(node)).keys());

/** A body whose running sums of matrix products are products that add to them. */
function withProductsAdding(body: Graph, carries: number): Graph {
  const [made, uses] = [producers(body), useCounts(body)];
  const adding = new Map<Node, readonly Node[]>();
  for (const { node, carry, added } of sumsOf(body, carries).values()) {
    const product = made.get(added);
    const isMatrix = product?.op === 'BatchMatMul' && product.inputs.every(({ shape }) => shape.length === 2);
    if (!isMatrix || uses.get(added) !== 1 || added.dtype !== 'float32') continue;
    if (!sameShape(added.shape, carry.shape)) continue;
    const { outputs } = node;
    adding.set(node, [{ ...product, op: 'MatMulAdd', inputs: [...product.inputs, carry], outputs }]);
    adding.set(product, []);
  }
  return { ...body, nodes: body.nodes.flatMap((node) => adding.get(node) ?? node) };
}

/** Adds matrix products to running sums of loops as they are multiplied, so that they need no memory of their own. */
export const addProductsInPlace = (graph: Graph): Graph => ({
  ...graph,
  nodes: graph.nodes.map((node) =>
    node.op === 'Scan' ? { ...node, bodies: [withProductsAdding(node.bodies![0]!, carriesOf(node))] } : node,
  ),
});
