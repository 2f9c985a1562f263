/** @file Algebraic simplification: rewrites that hold for every input and leave less to do. */
import { type Graph, type Node, newValue, producers, rewrite, useCounts, type Value } from '../graph.js';
import { hostArrayFrom, sameShape, sizeOf, type TensorSpec } from '../types.js';

/** What a rewrite may look at. */
interface Context {
  readonly producer: (value: Value) => Node | undefined;
  readonly uses: (value: Value) => number;
  /** Adds a node and gives its only output; it belongs to the layer of the node that it stands for, or to another. */
  readonly emit: (
    op: string,
    inputs: readonly Value[],
    attrs: Node['attrs'],
    spec: TensorSpec,
    scope?: string,
  ) => Value;
}

/** The value that stands for the node's only output, or null where the rewrite does not apply. */
type Rewrite = (node: Node, context: Context) => Value | null;

/** The number that a value holds everywhere, or null. */
function splat(value: Value, { producer }: Context): number | null {
  if (value.data)
    return value.data.length > 0 && value.data.every((x) => Object.is(x, value.data![0]))
      ? value.data[0]!
      : null;
  const node = producer(value);
  if (node === undefined) return null;
  if (node.op === 'Fill') return node.attrs.value as number;
  if (node.op === 'OnesLike') return 1;
  return node.op === 'ZerosLike' ? 0 : null;
}

const scalar = (value: number, dtype: TensorSpec['dtype']): Value =>
  newValue({ shape: [], dtype }, { data: hostArrayFrom(dtype, [value]) });

/** Nodes that give their input unchanged. */
const dropNoOps: Rewrite = ({ op, inputs, outputs, attrs }) => {
  const [x] = inputs;
  const [out] = outputs;
  if (op === 'Identity' || (op === 'Cast' && x!.dtype === out!.dtype)) return x!;
  const keepsShape = x !== undefined && sameShape(x.shape, out!.shape);
  if (
    keepsShape &&
    (op === 'Reshape' || op === 'ExpandDims' || op === 'Slice' || op === 'Tile' || op === 'BroadcastTo')
  )
    return x;
  if (op === 'Transpose' && (attrs.perm as readonly number[]).every((axis, i) => axis === i)) return x!;
  if ((op === 'Concat' || op === 'AddN') && inputs.length === 1) return x!;
  if (
    (op === 'Sum' || op === 'Mean' || op === 'Max') &&
    x!.dtype === out!.dtype &&
    (attrs.axes as readonly number[]).length === 0
  )
    return x!;
  return null;
};

/** x + 0, x - 0, x * 1, x / 1, where the other side does not widen the result. */
const dropNeutral: Rewrite = ({ op, inputs: [a, b], outputs: [out] }, context) => {
  const neutral = { Add: 0, Sub: 0, Multiply: 1, RealDiv: 1 }[op];
  if (neutral === undefined) return null;
  if (splat(b!, context) === neutral && sameShape(a!.shape, out!.shape)) return a!;
  const commutes = op === 'Add' || op === 'Multiply';
  return commutes && splat(a!, context) === neutral && sameShape(b!.shape, out!.shape) ? b! : null;
};

/** A tensor of equal elements beside a full one is read as a scalar. */
const shrinkSplat: Rewrite = (node, context) => {
  const { op, inputs, outputs, attrs } = node;
  if (inputs.length !== 2 || !['Add', 'Sub', 'Multiply', 'RealDiv', 'Maximum', 'Minimum'].includes(op))
    return null;
  for (const side of [0, 1]) {
    const value = splat(inputs[side]!, context);
    const other = inputs[1 - side]!;
    if (value === null || inputs[side]!.shape.length === 0 || !sameShape(other.shape, outputs[0]!.shape))
      continue;
    const small = scalar(value, inputs[side]!.dtype);
    return context.emit(op, side === 0 ? [small, other] : [other, small], attrs, outputs[0]!);
  }
  return null;
};

/** Reshape of reshape, and transpose of transpose, become one. */
const mergeViews: Rewrite = ({ op, inputs: [x], outputs: [out], attrs }, { producer, emit }) => {
  const inner = producer(x!);
  if (inner === undefined) return null;
  if ((op === 'Reshape' || op === 'ExpandDims') && (inner.op === 'Reshape' || inner.op === 'ExpandDims')) {
    const source = inner.inputs[0]!;
    return sameShape(source.shape, out!.shape)
      ? source
      : emit('Reshape', [source], { shape: out!.shape }, out!);
  }
  if (op === 'Transpose' && inner.op === 'Transpose') {
    const first = inner.attrs.perm as readonly number[];
    const perm = (attrs.perm as readonly number[]).map((axis) => first[axis]!);
    return perm.every((axis, i) => axis === i)
      ? inner.inputs[0]!
      : emit('Transpose', [inner.inputs[0]!], { perm }, out!);
  }
  return null;
};

/** A transpose of the last two axes goes into the product that reads it. */
const absorbTranspose: Rewrite = ({ op, inputs, outputs, attrs }, { producer, emit }) => {
  if (op !== 'BatchMatMul') return null;
  const source = (value: Value): Value | null => {
    const node = producer(value);
    const perm = node?.op === 'Transpose' ? (node.attrs.perm as readonly number[]) : [];
    const rank = perm.length;
    const swapsLast =
      rank >= 2 &&
      perm.every((axis, i) => axis === (i === rank - 1 ? rank - 2 : i === rank - 2 ? rank - 1 : i));
    return swapsLast ? node!.inputs[0]! : null;
  };
  const [a, b] = inputs.map(source);
  if (!a && !b) return null;
  const swapped = {
    ...attrs,
    transposeA: a ? !attrs.transposeA : attrs.transposeA!,
    transposeB: b ? !attrs.transposeB : attrs.transposeB!,
  };
  return emit(op, [a ?? inputs[0]!, b ?? inputs[1]!], swapped, outputs[0]!);
};

/** A scalar factor of a product, or of one of its operands, becomes its alpha. */
const absorbFactor: Rewrite = ({ op, inputs, outputs }, context) => {
  const { producer, uses, emit } = context;
  if (op !== 'Multiply') return null;
  for (const side of [0, 1]) {
    const product = producer(inputs[side]!);
    const factor = splat(inputs[1 - side]!, context);
    if (product?.op !== 'BatchMatMul' || factor === null || uses(inputs[side]!) !== 1) continue;
    if (outputs[0]!.dtype !== 'float32') continue;
    if (!sameShape(inputs[side]!.shape, outputs[0]!.shape)) continue;
    return emit(
      'BatchMatMul',
      product.inputs,
      { ...product.attrs, alpha: (product.attrs.alpha as number) * factor },
      outputs[0]!,
      product.scope,
    );
  }
  return null;
};

/** -x as a factor, and products of constant factors, become one factor. */
const mergeFactors: Rewrite = ({ op, inputs, outputs }, context) => {
  if (op !== 'Multiply') return null;
  for (const side of [0, 1]) {
    const inner = context.producer(inputs[side]!);
    const factor = splat(inputs[1 - side]!, context);
    if (factor === null || inner?.op !== 'Multiply' || outputs[0]!.dtype !== 'float32') continue;
    for (const innerSide of [0, 1]) {
      const innerFactor = splat(inner.inputs[1 - innerSide]!, context);
      const source = inner.inputs[innerSide]!;
      if (innerFactor === null || !sameShape(source.shape, outputs[0]!.shape)) continue;
      return context.emit('Multiply', [source, scalar(innerFactor * factor, 'float32')], {}, outputs[0]!);
    }
  }
  return null;
};

/** A sum or mean over axes of size 1 only changes the shape. */
const dropUnitReduction: Rewrite = ({ op, inputs: [x], outputs: [out], attrs }, { emit }) => {
  if (!['Sum', 'Mean', 'Max', 'Min'].includes(op) || x!.dtype !== out!.dtype) return null;
  if (sizeOf(x!.shape) !== sizeOf(out!.shape)) return null;
  return (attrs.axes as readonly number[]).every((axis) => x!.shape[axis] === 1)
    ? emit('Reshape', [x!], { shape: out!.shape }, out!)
    : null;
};

const REWRITES: readonly Rewrite[] = [
  dropNoOps,
  dropNeutral,
  mergeViews,
  dropUnitReduction,
  absorbTranspose,
  absorbFactor,
  mergeFactors,
  shrinkSplat,
];

/** Applies every rewrite, in one walk; a result of one is open to the next. */
export function simplify(graph: Graph): Graph {
  const made = producers(graph);
  const counts = useCounts(graph);
  return rewrite(graph, (node, emit) => {
    const push = (next: Node): void => {
      for (const output of next.outputs) made.set(output, next);
      emit(next);
    };
    if (node.outputs.length !== 1) {
      push(node);
      return node.outputs;
    }
    let current = node;
    for (;;) {
      let pending: Node | null = null;
      const context: Context = {
        producer: (value) => made.get(value),
        uses: (value) => counts.get(value) ?? 1,
        emit: (op, inputs, attrs, spec, scope = node.scope) => {
          const output = newValue({ shape: spec.shape, dtype: spec.dtype });
          pending = { op, inputs, outputs: [output], attrs, scope };
          counts.set(output, counts.get(node.outputs[0]!) ?? 1);
          return output;
        },
      };
      const result = firstRewrite(current, context);
      if (result === null) break;
      if (pending === null) {
        // Whoever read the node reads the result from now on.
        const [first] = current.inputs;
        const freed = current.inputs.includes(result) || counts.get(first!) === 1 ? 1 : 0;
        counts.set(result, (counts.get(result) ?? 1) - freed + (counts.get(node.outputs[0]!) ?? 1));
        return [result];
      }
      current = pending;
    }
    push(current);
    return current.outputs;
  });
}

function firstRewrite(node: Node, context: Context): Value | null {
  for (const apply of REWRITES) {
    const result = apply(node, context);
    if (result !== null) return result;
  }
  return null;
}
