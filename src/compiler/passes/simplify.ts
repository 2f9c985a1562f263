/** @file Algebraic simplification: rewrites that hold for every input and reduce work. */
import { type Graph, type Node, newValue, type Value } from '../program/ir.js';
import { type DType, hostArrayFrom, type Shape, sameShape, sizeOf } from '../program/tensors.js';
import { any, node, number, once, op, wide } from './patterns.js';
import { applyRules, type Make, reshaped, rule } from './rewriting.js';

const [x, a, b] = [any('x'), any('a'), any('b')];
const [c, d] = [number('c'), number('d')];

const VIEWS = ['Reshape', 'ExpandDims'];
const REDUCTIONS = ['Sum', 'Mean', 'Max', 'Min'];
const UNCHANGING = [
  'Identity',
  'Cast',
  'Slice',
  'Tile',
  'BroadcastTo',
  'Concat',
  'AddN',
  ...VIEWS,
  ...REDUCTIONS,
];
const TAKES_SCALARS = ['Add', 'Sub', 'Multiply', 'RealDiv', 'Maximum', 'Minimum'];

const permOf = ({ attrs }: Node): readonly number[] => attrs.perm as readonly number[];

/** Whether a transpose swaps only the last two axes. */
const swapsLastTwo = (transpose: Node): boolean => {
  const rank = permOf(transpose).length;
  const swapped = (axis: number): number => (axis < rank - 2 ? axis : 2 * rank - 3 - axis);
  return rank >= 2 && permOf(transpose).every((from, axis) => from === swapped(axis));
};

const scalar = (value: number, dtype: DType): Value =>
  newValue({ shape: [], dtype }, { data: hostArrayFrom(dtype, [value]) });

const batchOf = ({ shape }: Value): Shape => shape.slice(0, -2);

/** [batch…, rows, columns] as one matrix of all rows. */
const allRows = (value: Value, make: Make): Value =>
  reshaped(value, [sizeOf(value.shape.slice(0, -1)), value.shape.at(-1)!], make);

const stretched = node('stretch', op(['Tile', 'BroadcastTo'], x));

/** The operand of a copy along axes of size 1 alone; false for copies side by side. */
function unstretched({ x, stretch }: { x: Value; stretch: Node }, make: Make): Value | false {
  if (sizeOf(x.shape) === 1) return reshaped(x, [], make);
  const shape = stretch.outputs[0]!.shape.slice(-x.shape.length);
  return x.shape.every((size, axis) => size === 1 || size === shape[axis]) && x;
}

/** Rewrites that would change shape or dtype are rejected: `x + 0` is not x where broadcasting zeros enlarges it. */
const RULES = [
  rule(op(UNCHANGING, x), ({ x }) => x),
  rule(op('Transpose', x), ({ x, root }) => permOf(root).every((from, axis) => from === axis) && x),
  rule(op(['Add', 'Sub'], x, 0), ({ x }) => x),
  rule(op(['Multiply', 'RealDiv'], x, 1), ({ x }) => x),

  // A choice broadcasts its operands by itself, beside one of the full shape.
  rule(op('Select', stretched, a, b), (found, make) => {
    const cond = unstretched(found, make);
    return cond && make('Select', [cond, found.a, found.b]);
  }),
  rule(op('Select', a, stretched, b), (found, make) => {
    const chosen = unstretched(found, make);
    return chosen && make('Select', [found.a, chosen, found.b]);
  }),
  rule(op('Select', a, b, stretched), (found, make) => {
    const chosen = unstretched(found, make);
    return chosen && make('Select', [found.a, found.b, chosen]);
  }),

  // Views of views, and reductions that change only the shape.
  rule(op(VIEWS, op(VIEWS, x)), ({ x, out }, make) => reshaped(x, out.shape, make)),
  rule(op('Transpose', node('inner', op('Transpose', x))), ({ x, inner, root }, make) =>
    make('Transpose', [x], { perm: permOf(root).map((axis) => permOf(inner)[axis]!) }),
  ),
  rule(
    op(REDUCTIONS, x),
    ({ x, out }, make) => sizeOf(x.shape) === sizeOf(out.shape) && reshaped(x, out.shape, make),
  ),

  // Products absorb transposes and factors of their operands, and factors of their result.
  rule(
    op('BatchMatMul', node('turned', op('Transpose', a)), b),
    ({ a, b, turned, root: { attrs } }, make) =>
      swapsLastTwo(turned) && make('BatchMatMul', [a, b], { ...attrs, transposeA: !attrs.transposeA }),
  ),
  rule(
    op('BatchMatMul', a, node('turned', op('Transpose', b))),
    ({ a, b, turned, root: { attrs } }, make) =>
      swapsLastTwo(turned) && make('BatchMatMul', [a, b], { ...attrs, transposeB: !attrs.transposeB }),
  ),
  rule(
    op('Multiply', once(node('product', op('BatchMatMul', a, b))), c),
    ({ a, b, c, product: { attrs, scope }, out }, make) =>
      out.dtype === 'float32' &&
      make('BatchMatMul', [a, b], { ...attrs, alpha: (attrs.alpha as number) * c }, scope),
  ),
  rule(
    op('Multiply', once(node('view', op('Reshape', once(node('product', op('BatchMatMul', a, b)))))), c),
    ({ a, b, c, product: { attrs, scope }, view, out }, make) =>
      out.dtype === 'float32' &&
      reshaped(
        make('BatchMatMul', [a, b], { ...attrs, alpha: (attrs.alpha as number) * c }, scope),
        view.outputs[0]!.shape,
        make,
      ),
  ),
  // Integers may overflow in between.
  rule(
    op('Multiply', op('Multiply', x, c), d),
    ({ x, c, d, out }, make) => out.dtype === 'float32' && make('Multiply', [x, scalar(c * d, out.dtype)]),
  ),

  // A batch times one matrix is one product of all rows; so is a sum of products over a batch, such as a weight's
  // gradient.
  rule(
    op('BatchMatMul', a, b),
    ({ a, b, root: { attrs }, out }, make) =>
      out.shape.length > 2 &&
      sizeOf(batchOf(b)) === 1 &&
      !attrs.transposeA &&
      reshaped(
        make('BatchMatMul', [allRows(a, make), reshaped(b, b.shape.slice(-2), make)], attrs),
        out.shape,
        make,
      ),
  ),
  rule(op('Sum', once(node('product', op('BatchMatMul', a, b)))), ({ a, b, product, root, out }, make) => {
    const { transposeA, transposeB } = product.attrs;
    const batch = batchOf(product.outputs[0]!);
    const axes = root.attrs.axes as readonly number[];
    return (
      axes.length === batch.length &&
      axes.every((axis) => axis < batch.length) &&
      [a, b].every((operand) => sameShape(batchOf(operand), batch)) &&
      transposeA === true &&
      !transposeB &&
      reshaped(
        make('BatchMatMul', [allRows(a, make), allRows(b, make)], product.attrs, product.scope),
        out.shape,
        make,
      )
    );
  }),

  // Beside a full operand, a tensor of equal elements is read as a scalar.
  rule(op(TAKES_SCALARS, x, wide(c)), ({ x, c, root }, make) => make(root.op, [x, scalar(c, x.dtype)])),
  rule(op(TAKES_SCALARS, wide(c), x), ({ x, c, root }, make) => make(root.op, [scalar(c, x.dtype), x])),
];

/** The simplified graph, with the same results. */
export const simplify = (graph: Graph): Graph => applyRules(RULES, graph);
