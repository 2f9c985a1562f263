/** @file Expansion of operations along dimensions that are split, whose plainer parts ranks can share. */
import { expandComposites, SOFTMAX_FORMS } from '../passes/index.js';
import { type Graph, mapBodies, type Node, rewrite, type Value } from '../program/ir.js';
import { scalar } from './onParts.js';
import { factorsOf } from './relations.js';
import { type Emit, emitTo } from './reshard.js';
import type { Shardings } from './sharding.js';

/** The first place of an extremum: the least of the places whose elements are equal to it. */
const firstPlace =
  (op: 'Max' | 'Min') =>
  ({ inputs: [x], attrs }: Node, emit: Emit): Value => {
    const axis = attrs.axis as number;
    const size = x!.shape[axis]!;
    const isExtreme = emit('Equal', [x!, emit(op, [x!], { axes: [axis], keepDims: true })]);
    const range = emit('Range', [], { start: 0, stop: size, step: 1, dtype: 'int32' });
    const places = emit('Reshape', [range], { shape: x!.shape.map((_, i) => (i === axis ? size : 1)) });
    const chosen = emit('Select', [isExtreme, places, scalar(size - 1, 'int32')]);
    return emit('Min', [chosen], { axes: [axis], keepDims: false });
  };

const PLAIN_FORMS: Readonly<Record<string, (node: Node, emit: Emit) => Value>> = {
  ...SOFTMAX_FORMS,
  ArgMax: firstPlace('Max'),
  ArgMin: firstPlace('Min'),
};

/** Operations that compute along lines, by reductions over these. */
const ALONG_LINES: ReadonlySet<string> = new Set([
  'LayerNorm',
  'RmsNorm',
  'SoftmaxCrossEntropy',
  'SoftmaxCrossEntropyGrad',
  ...Object.keys(PLAIN_FORMS),
]);

/** Whether an operation needs a dimension whole that is split. */
function needsWhole(node: Node, shardings: Shardings): boolean {
  if (!ALONG_LINES.has(node.op)) return false;
  const { inputs, outputs } = factorsOf(node)!;
  const values = [...node.inputs, ...node.outputs];
  return [...inputs, ...outputs].some((dims, i) =>
    dims.some((factors, dim) => {
      const axes = shardings.get(values[i]!)?.[dim] ?? [];
      return factors.length === 0 && axes.length > 0;
    }),
  );
}

/** The graph with such operations in plainer ones; the same graph where there are none. */
export function expandSplit(graph: Graph, shardings: Shardings): Graph {
  const isSplit = (node: Node) => needsWhole(node, shardings);
  const within = mapBodies(graph, (body) => expandSplit(body, shardings));
  const isChanged = within.nodes.some((node, i) =>
    node.bodies?.some((body, k) => body !== graph.nodes[i]!.bodies![k]),
  );
  const current = isChanged ? within : graph;
  if (!current.nodes.some(isSplit)) return current;
  return rewrite(
    expandComposites(current, (node) => !isSplit(node)),
    (node, push) => {
      const form = isSplit(node) ? PLAIN_FORMS[node.op] : undefined;
      if (form === undefined) {
        push(node);
        return node.outputs;
      }
      const nodes: Node[] = [];
      const value = form(node, emitTo(nodes, node.scope));
      for (const each of nodes) push(each);
      return [value];
    },
  );
}
