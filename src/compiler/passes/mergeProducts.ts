/** @file Sums of matrix products as one product, of operands joined along the axis that is summed over. */
import { type Graph, type Node, newValue, producers, rewrite, useCounts, type Value } from '../program/ir.js';
import { sizeOf } from '../program/tensors.js';
import { inferOutputs } from '../rules/index.js';
import { eliminateDeadCode } from './dce.js';
import type { GraphReader } from './patterns.js';
import { applyRules, type Make, type Rule } from './rewriting.js';

/** Most terms of a merged product's sums: beyond, it is hardly faster, but its operands live until it runs. */
const MOST_TERMS = 1024;

/** A product's operand: the pieces that it is joined from along the axis that is summed over. */
interface Joined {
  readonly pieces: readonly Value[];
  readonly axis: number;
}

function joined(value: Value, axis: number, { producer, uses }: GraphReader): Joined {
  const made = producer(value);
  const isJoin = made?.op === 'Concat' && made.attrs.axis === axis && uses(value) === 1;
  return { pieces: isJoin ? made.inputs : [value], axis };
}

const operandsOf = ({ inputs: [a, b], attrs }: Node, graph: GraphReader): readonly [Joined, Joined] => [
  joined(a!, attrs.transposeA ? 0 : 1, graph),
  joined(b!, attrs.transposeB ? 1 : 0, graph),
];

/** Terms of each element's sum. */
const termsOf = ({ pieces, axis }: Joined): number =>
  pieces.reduce((sum, piece) => sum + piece.shape[axis]!, 0);

/** A product of matrices that nothing else reads. */
function productOf(value: Value, { producer, uses }: GraphReader): Node | undefined {
  const made = producer(value);
  const isProduct = made?.op === 'BatchMatMul' && uses(value) === 1 && value.dtype === 'float32';
  return isProduct && made.inputs.every(({ shape }) => shape.length === 2) ? made : undefined;
}

const ATTRS = ['transposeA', 'transposeB', 'alpha', 'precision'] as const;

/** One product for the sum of two, or null where joining operands would cost more than adding up results. */
function merged(x: Node, y: Node, graph: GraphReader, make: Make): Value | null {
  if (ATTRS.some((name) => x.attrs[name] !== y.attrs[name])) return null;
  const [ofX, ofY] = [operandsOf(x, graph), operandsOf(y, graph)];
  const operands = ofX.map(
    ({ pieces, axis }, i): Joined => ({ pieces: [...pieces, ...ofY[i]!.pieces], axis }),
  );
  const [left, right] = operands as [Joined, Joined];
  const size = sizeOf(x.outputs[0]!.shape);
  const isShallow = left.pieces.every(
    (piece, i) => sizeOf(piece.shape) + sizeOf(right.pieces[i]!.shape) <= size,
  );
  const arePaired = left.pieces.length === right.pieces.length;
  if (!arePaired || !isShallow || termsOf(left) > MOST_TERMS) return null;
  const [a, b] = operands.map(({ pieces, axis }) => make('Concat', pieces, { axis }));
  return make('BatchMatMul', [a!, b!], x.attrs);
}

const bothOrders = ([x, y]: readonly Value[]): readonly (readonly [Value, Value])[] => [
  [x!, y!],
  [y!, x!],
];

/** Replaces `product + product`, and `rest + product + product`. */
const mergesProducts: Rule = (root, graph, make) => {
  if (root.op !== 'Add') return null;
  for (const [first, second] of bothOrders(root.inputs)) {
    const last = productOf(second, graph);
    if (last === undefined) continue;
    const product = productOf(first, graph);
    const whole = product && merged(product, last, graph, make);
    if (whole) return whole;
    const sum = graph.uses(first) === 1 ? graph.producer(first) : undefined;
    for (const [rest, one] of sum?.op === 'Add' ? bothOrders(sum.inputs) : []) {
      const before = productOf(one, graph);
      const both = before && merged(before, last, graph, make);
      if (both) return make('Add', [rest, both]);
    }
  }
  return null;
};

/** The stack of exactly these values, along one of its two leading axes. */
function stackOf(pieces: readonly Value[], readers: ReadonlyMap<Value, readonly Node[]>): Node | undefined {
  const all = new Set(pieces);
  return readers
    .get(pieces[0]!)
    ?.find(
      ({ op, inputs, attrs }) =>
        op === 'Pack' &&
        (attrs.axis as number) <= 1 &&
        inputs.length === all.size &&
        new Set(inputs).size === all.size &&
        inputs.every((input) => all.has(input)),
    );
}

/**
 * Takes right operands from stacks of the same pieces, such as the gradients of a recurrent layer's inputs: one place in
 * memory, packed once, then serves both. The order of the terms does not matter, so the left operands follow it.
 */
function readStacks(graph: Graph): Graph {
  const [made, counts] = [producers(graph), useCounts(graph)];
  const readers = new Map<Value, Node[]>();
  for (const node of graph.nodes)
    for (const input of new Set(node.inputs)) readers.set(input, [...(readers.get(input) ?? []), node]);
  const reader: GraphReader = {
    producer: (value) => made.get(value),
    uses: (value) => counts.get(value) ?? 1,
  };
  const early = new Map<Node, Value>();
  return rewrite(graph, (node, emit) => {
    const known = early.get(made.get(node.outputs[0]!)!);
    if (known !== undefined) return [known];
    const isMerged = node.op === 'BatchMatMul' && node.attrs.transposeA && !node.attrs.transposeB;
    const [left, right] = isMerged ? operandsOf(node, reader) : [];
    const stack = right && right.pieces.length > 1 ? stackOf(right.pieces, readers) : undefined;
    if (left?.pieces.length !== stack?.inputs.length || stack === undefined || early.has(stack)) {
      emit(node);
      return node.outputs;
    }
    const make = (op: string, inputs: readonly Value[], attrs: Node['attrs']): Value => {
      const output = newValue(inferOutputs(op, inputs, attrs)[0]!);
      emit({ op, inputs, outputs: [output], attrs, scope: node.scope });
      return output;
    };
    const whole = make('Pack', stack.inputs, stack.attrs);
    early.set(stack, whole);
    const order = stack.inputs.map((input) => left!.pieces[right!.pieces.indexOf(input)]!);
    const rows = (x: Value): Value =>
      make('Reshape', [x], { shape: [x.shape[0]! * x.shape[1]!, x.shape[2]!] });
    return [make('BatchMatMul', [rows(make('Pack', order, stack.attrs)), rows(whole)], node.attrs)];
  });
}

/**
 * Merges products whose operands are smaller than their sum: the gradient of a weight that a recurrent layer uses at each
 * step is a product of all steps' rows, in place of sums that are read and written for each step.
 */
export function mergeProducts(graph: Graph): Graph {
  const merged = applyRules([mergesProducts], graph);
  return merged === graph ? graph : eliminateDeadCode(readStacks(merged));
}
