/** @file The graph as the native lowering wants it: composites but attention expanded, softmax and the like as plain steps. */
import { type Attrs, type Graph, type Node, newValue, rewrite, type Value } from '../graph.js';
import {
  dropEmpties,
  eliminateDeadCode,
  expandComposites,
  foldConstants,
  simplify,
} from '../passes/index.js';
import { type Shape, sizeOf, type TensorSpec } from '../types.js';

/** Adds a node with one output to a graph under construction. */
type Emit = (op: string, inputs: readonly Value[], attrs: Attrs, spec: TensorSpec) => Value;

const reduced = (shape: Shape, axis: number): number[] => shape.map((dim, i) => (i === axis ? 1 : dim));

/** exp(x - max) and its logarithm's parts, along one axis. */
function shifted(x: Value, axis: number, emit: Emit): { centered: Value; exps: Value; sum: Value } {
  const row: TensorSpec = { shape: reduced(x.shape, axis), dtype: 'float32' };
  const attrs = { axes: [axis], keepDims: true };
  const centered = emit('Sub', [x, emit('Max', [x], attrs, row)], {}, x);
  const exps = emit('Exp', [centered], {}, x);
  return { centered, exps, sum: emit('Sum', [exps], attrs, row) };
}

/** Operations as plainer ones: each entry gives the values of the node's outputs. */
const EXPANSIONS: Readonly<Record<string, (node: Node, emit: Emit) => Value[]>> = {
  Softmax: ({ inputs: [x], attrs }, emit) => {
    const { exps, sum } = shifted(x!, attrs.axis as number, emit);
    const inverse = emit('Reciprocal', [sum], {}, sum);
    return [emit('Multiply', [exps, inverse], {}, x!)];
  },
  LogSoftmax: ({ inputs: [x], attrs }, emit) => {
    const { centered, sum } = shifted(x!, attrs.axis as number, emit);
    return [emit('Sub', [centered, emit('Log', [sum], {}, sum)], {}, x!)];
  },
  Mean: ({ inputs: [x], outputs: [out], attrs }, emit) => {
    const floats =
      x!.dtype === 'float32'
        ? x!
        : emit('Cast', [x!], { dtype: 'float32' }, { shape: x!.shape, dtype: 'float32' });
    const sum = emit('Sum', [floats], attrs, out!);
    const data = new Float32Array([sizeOf(out!.shape) / sizeOf(x!.shape)]);
    return [emit('Multiply', [sum, newValue({ shape: [], dtype: 'float32' }, { data })], {}, out!)];
  },
  BatchMatMul: (node, emit) => [multiplyIntegers(node, emit)],
  UnsortedSegmentSum: (node, emit) => [sumIntegersBySegment(node, emit)],
  ArgMax: (node, emit) => firstIndex('Max', node, emit),
  ArgMin: (node, emit) => firstIndex('Min', node, emit),
  FoldIn: ({ inputs: [key], outputs: [out], attrs }, emit) => {
    const word: TensorSpec = { shape: [1], dtype: 'int32' };
    const [k0, k1] = [0, 1].map((begin) => emit('Slice', [key!], { begin: [begin], size: [1] }, word));
    const words = [emit('FoldInFirst', [k0!], attrs, word), emit('FoldInSecond', [k0!, k1!], attrs, word)];
    return [emit('Concat', words, { axis: 0 }, out!)];
  },
  RandomUniform: ({ inputs: [key], outputs: [out], attrs }, emit) => {
    const words = [0, 1].map((begin) => {
      const word = emit('Slice', [key!], { begin: [begin], size: [1] }, { shape: [1], dtype: 'int32' });
      return emit('Reshape', [word], { shape: [] }, { shape: [], dtype: 'int32' });
    });
    return [emit('RandomUniform', words, attrs, out!)];
  },
};

/** The place of the first element that equals the extreme one. */
function firstIndex(op: string, { inputs: [x], outputs: [out], attrs }: Node, emit: Emit): Value[] {
  const axis = attrs.axis as number;
  const kept: TensorSpec = { shape: reduced(x!.shape, axis), dtype: x!.dtype };
  const extreme = emit(op, [x!], { axes: [axis], keepDims: true }, kept);
  return [emit('FirstIndex', [x!, extreme], { axes: [axis], keepDims: false }, out!)];
}

/** A product of integers, exact: the runtime's are of floats. One loop that adds what it multiplies. */
function multiplyIntegers({ inputs, outputs: [out], attrs }: Node, emit: Emit): Value {
  const oriented = (x: Value, transpose: unknown): Value => {
    if (!transpose) return x;
    const axes = x.shape.map((_, axis) => axis);
    const perm = [...axes.slice(0, -2), axes.length - 1, axes.length - 2];
    return emit('Transpose', [x], { perm }, { shape: perm.map((axis) => x.shape[axis]!), dtype: 'int32' });
  };
  const a = oriented(inputs[0]!, attrs.transposeA);
  const b = oriented(inputs[1]!, attrs.transposeB);
  const expand = (x: Value, shape: Shape): Value =>
    emit('Reshape', [x], { shape }, { shape, dtype: 'int32' });
  const [m, k] = a.shape.slice(-2) as [number, number];
  const n = b.shape.at(-1)!;
  const left = expand(a, [...a.shape.slice(0, -2), m, 1, k]);
  const columns = oriented(b, true);
  const right = expand(columns, [...b.shape.slice(0, -2), 1, n, k]);
  const terms: TensorSpec = { shape: [...out!.shape.slice(0, -2), m, n, k], dtype: 'int32' };
  const axis = terms.shape.length - 1;
  return emit('Sum', [emit('Multiply', [left, right], {}, terms)], { axes: [axis], keepDims: false }, out!);
}

/** Sums of integers by segment, exact: the runtime's are of floats. One loop, in which a row counts where its id is the segment. */
function sumIntegersBySegment({ inputs: [x, ids], outputs: [out], attrs }: Node, emit: Emit): Value {
  const segments = attrs.numSegments as number;
  const rows = sizeOf(ids!.shape);
  const columns = sizeOf(x!.shape) / Math.max(1, rows);
  const int = (shape: Shape): TensorSpec => ({ shape, dtype: 'int32' });
  const shaped = (value: Value, shape: Shape): Value =>
    emit('Reshape', [value], { shape }, { shape, dtype: value.dtype });
  const range = { start: 0, stop: segments, step: 1, dtype: 'int32' };
  const segment = shaped(emit('Range', [], range, int([segments])), [segments, 1, 1]);
  const isMember = emit(
    'Equal',
    [segment, shaped(ids!, [1, 1, rows])],
    {},
    { shape: [segments, 1, rows], dtype: 'bool' },
  );
  const turned = emit('Transpose', [shaped(x!, [rows, columns])], { perm: [1, 0] }, int([columns, rows]));
  const zero = newValue(int([]), { data: new Int32Array(1) });
  const terms = emit(
    'Select',
    [isMember, shaped(turned, [1, columns, rows]), zero],
    {},
    int([segments, columns, rows]),
  );
  return shaped(emit('Sum', [terms], { axes: [2], keepDims: false }, int([segments, columns])), out!.shape);
}

/** Whether an operation is done as plainer ones. */
const isExpanded = ({ op, inputs }: Node): boolean => {
  if (EXPANSIONS[op] === undefined) return false;
  if (op === 'RandomUniform') return inputs.length === 1;
  const isExactOnly = op === 'BatchMatMul' || op === 'UnsortedSegmentSum';
  return !isExactOnly || inputs[0]!.dtype === 'int32';
};

function expandOps(graph: Graph): Graph {
  return rewrite(graph, (node, push) => {
    if (!isExpanded(node)) {
      push(node);
      return node.outputs;
    }
    return EXPANSIONS[node.op]!(node, (op, inputs, attrs, { shape, dtype }) => {
      const output = newValue({ shape, dtype });
      push({ op, inputs, outputs: [output], attrs, scope: node.scope });
      return output;
    });
  });
}

const ATTENTION = new Set(['Attention', 'AttentionGrad']);

/** Windows whose taps are neighbours are views. A slice is written where it belongs. The derivative of GELU is one function. Attention is one operation here where nobody but its gradient reads the weights: they are never in memory. */
function keepsWhole(graph: Graph): (node: Node) => boolean {
  const readers = new Map<Value, Node[]>();
  for (const node of graph.nodes)
    for (const input of node.inputs) readers.set(input, [...(readers.get(input) ?? []), node]);
  const outputs = new Set(graph.outputs);
  const exposed = (weights: Value): boolean =>
    outputs.has(weights) || (readers.get(weights) ?? []).some(({ op }) => op !== 'AttentionGrad');
  const kept = new Set<Value>();
  for (const { op, outputs: outs } of graph.nodes)
    if (op === 'Attention' && !exposed(outs[1]!)) kept.add(outs[1]!);
  return ({ op, inputs, outputs: outs, attrs }) =>
    (op === 'SlidingWindows' && attrs.step === 1) ||
    (op === 'UpdateSlice' && inputs[0]!.dtype !== 'bool') ||
    (op === 'GeluGrad' && !attrs.approximate) ||
    (ATTENTION.has(op) && kept.has(op === 'Attention' ? outs[1]! : inputs[5]!));
}

/** The weights [B, N, T, S] become the logarithms of the sums of exponentials [B, N, T], which the gradient starts from. */
function withLogSums(graph: Graph): Graph {
  const sums = new Map<Value, Value>();
  const masks = new Map<Value, readonly Value[]>();
  return rewrite(graph, (node, push) => {
    if (node.op === 'Attention') {
      const [out, weights] = node.outputs;
      const logSums = newValue({ shape: weights!.shape.slice(0, 3), dtype: 'float32' });
      sums.set(weights!, logSums);
      masks.set(weights!, node.inputs.slice(3));
      push({ ...node, outputs: [out!, logSums] });
    } else if (node.op === 'AttentionGrad') {
      const weights = node.inputs[5]!;
      push({ ...node, inputs: [...node.inputs.slice(0, 5), sums.get(weights)!, ...masks.get(weights)!] });
    } else push(node);
    return node.outputs;
  });
}

/**
 * Prepares an optimized graph. Equal subexpressions of the forward and the backward pass are not merged any more: what is
 * cheap to compute again would become memory that is kept.
 */
export function prepareForNative(graph: Graph): Graph {
  const keep = keepsWhole(graph);
  let current = dropEmpties(eliminateDeadCode(expandComposites(graph, keep)));
  current = simplify(foldConstants(current));
  return eliminateDeadCode(withLogSums(expandOps(current)));
}
