/** @file Expansions of operations that the native engine does not run as a whole into plainer ones. */
import { SOFTMAX_FORMS } from '../../passes/index.js';
import { type Attrs, type Graph, ints, type Node, newValue, rewrite, type Value } from '../../program/ir.js';
import { type DType, type HostArray, type Shape, sizeOf, type TensorSpec } from '../../program/tensors.js';
import { inferOutputs } from '../../rules/index.js';
import { passesOf } from './shortAxes.js';

/** Adds a single-output node to a graph under construction, with the shape and dtype of its rule, if it has one. */
type Emit = (op: string, inputs: readonly Value[], attrs?: Attrs, spec?: TensorSpec) => Value;

const scalar = (data: HostArray, dtype: DType): Value => newValue({ shape: [], dtype }, { data });

const reshaped = (x: Value, shape: Shape, emit: Emit): Value => emit('Reshape', [x], { shape });

/** Expansions into plainer operations; each returns the value of the node's output. */
export const EXPANSIONS: Readonly<Record<string, (node: Node, emit: Emit) => Value>> = {
  ...SOFTMAX_FORMS,
  Mean: ({ inputs: [x], outputs: [out], attrs }, emit) => {
    const floats = x!.dtype === 'float32' ? x! : emit('Cast', [x!], { dtype: 'float32' });
    const share = new Float32Array([sizeOf(out!.shape) / sizeOf(x!.shape)]);
    return emit('Multiply', [reduced('Sum', floats, out!, attrs, emit), scalar(share, 'float32')]);
  },
  Sum: inPasses,
  Prod: inPasses,
  Max: inPasses,
  Min: inPasses,
  All: inPasses,
  Any: inPasses,
  BatchMatMul: multiplyIntegers,
  UnsortedSegmentSum: sumIntegersBySegment,
  ArgMax: (node, emit) => firstIndex('Max', node, emit),
  ArgMin: (node, emit) => firstIndex('Min', node, emit),
  FoldIn: ({ inputs: [key], attrs }, emit) => {
    const word: TensorSpec = { shape: [1], dtype: 'int32' };
    const [k0, k1] = [0, 1].map((begin) => emit('Slice', [key!], { begin: [begin], size: [1] }));
    const words = [emit('FoldInFirst', [k0!], attrs, word), emit('FoldInSecond', [k0!, k1!], attrs, word)];
    return emit('Concat', words, { axis: 0 });
  },
  RandomUniform: byWords,
  RandomInt: byWords,
};

/** The same operation on the words of a key as scalars. */
function byWords({ op, inputs: [key], outputs: [out], attrs }: Node, emit: Emit): Value {
  const words = [0, 1].map((begin) =>
    reshaped(emit('Slice', [key!], { begin: [begin], size: [1] }), [], emit),
  );
  return emit(op, words, attrs, out!);
}

/** The index of the first element equal to the extremum. */
function firstIndex(op: string, { inputs: [x], outputs: [out], attrs }: Node, emit: Emit): Value {
  const axes = [attrs.axis as number];
  const extreme = emit(op, [x!], { axes, keepDims: true });
  return emit('FirstIndex', [x!, extreme], { axes, keepDims: false }, out!);
}

/** An exact product of integers as one fused loop; the runtime's products are of floats. */
function multiplyIntegers({ inputs, attrs }: Node, emit: Emit): Value {
  const oriented = (x: Value, transpose: unknown): Value => {
    if (!transpose) return x;
    const axes = x.shape.map((_, axis) => axis);
    return emit('Transpose', [x], { perm: [...axes.slice(0, -2), axes.length - 1, axes.length - 2] });
  };
  const rows = oriented(inputs[0]!, attrs.transposeA);
  const columns = oriented(oriented(inputs[1]!, attrs.transposeB), true);
  const left = reshaped(rows, [...rows.shape.slice(0, -1), 1, rows.shape.at(-1)!], emit);
  const right = reshaped(columns, [...columns.shape.slice(0, -2), 1, ...columns.shape.slice(-2)], emit);
  const terms = emit('Multiply', [left, right]);
  return emit('Sum', [terms], { axes: [terms.shape.length - 1], keepDims: false });
}

/**
 * An exact segment sum of integers as one fused loop, which adds a row where its id matches; the runtime's is of
 * floats.
 */
function sumIntegersBySegment({ inputs: [x, ids], outputs: [out], attrs }: Node, emit: Emit): Value {
  const segments = attrs.numSegments as number;
  const rows = sizeOf(ids!.shape);
  const columns = sizeOf(x!.shape) / Math.max(1, rows);
  const range = emit('Range', [], { start: 0, stop: segments, step: 1, dtype: 'int32' });
  const segment = reshaped(range, [segments, 1, 1], emit);
  const isMember = emit('Equal', [segment, reshaped(ids!, [1, 1, rows], emit)]);
  const turned = emit('Transpose', [reshaped(x!, [rows, columns], emit)], { perm: [1, 0] });
  const choices = [reshaped(turned, [1, columns, rows], emit), scalar(new Int32Array(1), 'int32')];
  const terms = emit('Select', [isMember, ...choices]);
  return reshaped(emit('Sum', [terms], { axes: [2], keepDims: false }), out!.shape, emit);
}

/** A reduction in passes, so that none walks its operand against the order of its memory. */
function inPasses({ op, inputs: [x], outputs: [out], attrs }: Node, emit: Emit): Value {
  return reduced(op, x!, out!, attrs, emit);
}

function reduced(op: string, x: Value, { shape }: TensorSpec, attrs: Attrs, emit: Emit): Value {
  const passes = passesOf(x.shape, ints(attrs.axes));
  if (passes.length === 1) return emit(op, [x], attrs);
  return reshaped(
    passes.reduce((value, axes) => emit(op, [value], { axes, keepDims: true }), x),
    shape,
    emit,
  );
}

/** Whether an operation is expanded. */
const isExpanded = ({ op, inputs, attrs }: Node): boolean => {
  if (EXPANSIONS[op] === undefined) return false;
  if (EXPANSIONS[op] === inPasses) return passesOf(inputs[0]!.shape, ints(attrs.axes)).length > 1;
  if (EXPANSIONS[op] === byWords) return inputs.length === 1;
  const isExactOnly = op === 'BatchMatMul' || op === 'UnsortedSegmentSum';
  return !isExactOnly || inputs[0]!.dtype === 'int32';
};

/** Expands the operations that have an expansion. */
export function expandOps(graph: Graph): Graph {
  return rewrite(graph, (node, push) => {
    if (!isExpanded(node)) {
      push(node);
      return node.outputs;
    }
    const emit: Emit = (op, inputs, attrs = {}, spec = inferOutputs(op, inputs, attrs)[0]!) => {
      const output = newValue(spec);
      push({ op, inputs, outputs: [output], attrs, scope: node.scope });
      return output;
    };
    return [EXPANSIONS[node.op]!(node, emit)];
  });
}
