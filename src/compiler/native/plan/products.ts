/** @file Matrix products in the runtime's form: any strides, leading axes merged into rows where possible. */

import { type Precision, precisionOf } from '../../program/precision.js';
import type { Shape } from '../../program/tensors.js';
import { broadcastShapes } from '../../rules/broadcasting.js';
import type { PlacedOp } from './placedOps.js';
import { type Buffer, broadcastView, mergeAxes, type View } from './views.js';

/** A matrix in a buffer: element (i, j) is at offset + i * rs + j * cs. */
export interface Matrix {
  readonly buffer: Buffer;
  readonly offset: number;
  readonly rs: number;
  readonly cs: number;
}

/** c = alpha * a b, or c += alpha * a b, for every item of a batch; most have one item. */
export interface ProductUnit {
  readonly kind: 'product';
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: Matrix;
  readonly b: Matrix;
  readonly c: Matrix;
  readonly alpha: number;
  /** What the product is added to, in the same memory as c. */
  readonly sum?: Buffer;
  readonly precision: Precision;
  /** Axes of the batch, and the strides of a, b and c along them. */
  readonly batch: Shape;
  readonly batchStrides: readonly [readonly number[], readonly number[], readonly number[]];
  readonly scope: string;
  readonly after?: PlacedOp['after'];
}

/** The least depth of a part of a sum: of a shallower one, storing its sum would cost as much as the sum. */
const PART_DEPTH = 512;

/** A long sum has so many parts, for any number of threads to divide. */
const [LEAST_PARTS, MOST_PARTS] = [8, 64];

/** Elements of all parts' sums. */
const MOST_SUMS = 2 ** 20;

/**
 * Parts that k is split in where it is long and the result small, so that threads find too little to divide in m and n:
 * they sum over a part each, and meet once. 0: k is not split. It depends on the shape alone.
 */
export function sumPartsOf({ m, n, k, batch }: Pick<ProductUnit, 'm' | 'n' | 'k' | 'batch'>): number {
  if (batch.length > 0) return 0;
  const parts = Math.floor(Math.min(k / PART_DEPTH, MOST_PARTS, MOST_SUMS / Math.max(1, m * n)));
  return parts < LEAST_PARTS ? 0 : parts;
}

/** Left or right operand of a product. */
export type Side = 'a' | 'b';

/** Rows of a left operand, columns of a right one. */
export const edgeOf = (side: Side, { m, n }: ProductUnit): number => (side === 'a' ? m : n);

/** Key that is equal for operands that are packed alike and can be shared. */
export function operandKey(side: Side, unit: ProductUnit): string {
  const { buffer, offset, rs, cs } = unit[side];
  return [side, buffer.id, offset, rs, cs, edgeOf(side, unit), unit.k, unit.precision].join(' ');
}

const transposed = (view: View): View => {
  const order = view.shape.map((_, i) => i);
  const rank = order.length;
  [order[rank - 2], order[rank - 1]] = [rank - 1, rank - 2];
  return {
    ...view,
    shape: order.map((axis) => view.shape[axis]!),
    strides: order.map((axis) => view.strides[axis]!),
  };
};

const matrix = (view: View, rs: number): Matrix => ({
  buffer: view.buffer,
  offset: view.offset,
  rs,
  cs: view.strides.at(-1)!,
});

/** The common stride of batch and rows, or null if there is none. */
function mergedRows(view: View): number | null {
  const runs = mergeAxes(view.shape.slice(0, -1), view.strides.slice(0, -1));
  return runs.length > 1 ? null : (runs[0]?.stride ?? view.strides.at(-2)!);
}

/** The product unit of a BatchMatMul or a MatMulAdd. */
export function productOf({ inputs, outputs, attrs, scope, after }: PlacedOp): ProductUnit {
  const [left, right, sum] = inputs as readonly [View, View, View?];
  const c = outputs[0]!;
  const batch = broadcastShapes(left.shape.slice(0, -2), right.shape.slice(0, -2));
  const widen = (view: View, transpose: unknown): View => {
    const plain = transpose ? transposed(view) : view;
    return broadcastView(plain, [...batch, ...plain.shape.slice(-2)]);
  };
  const a = widen(left, attrs.transposeA);
  const b = widen(right, attrs.transposeB);
  const [m, k] = a.shape.slice(-2) as [number, number];
  const n = b.shape.at(-1)!;
  const common = {
    kind: 'product' as const,
    n,
    k,
    alpha: attrs.alpha as number,
    ...(sum && { sum: sum.buffer }),
    precision: precisionOf(attrs),
    scope,
    ...(after && { after }),
  };
  const isShared = b.strides.slice(0, -2).every((stride, i) => stride === 0 || b.shape[i] === 1);
  const [rowsOfA, rowsOfC] = [mergedRows(a), mergedRows(c)];
  if (isShared && rowsOfA !== null && rowsOfC !== null) {
    // With one right matrix for the whole batch, its items are rows of one product.
    const rows = batch.reduce((size, dim) => size * dim, m);
    return {
      ...common,
      m: rows,
      a: matrix(a, rowsOfA),
      b: matrix(b, b.strides.at(-2)!),
      c: matrix(c, rowsOfC),
      batch: [],
      batchStrides: [[], [], []],
    };
  }
  const strides = (view: View): readonly number[] => view.strides.slice(0, -2);
  return {
    ...common,
    m,
    a: matrix(a, a.strides.at(-2)!),
    b: matrix(b, b.strides.at(-2)!),
    c: matrix(c, c.strides.at(-2)!),
    batch,
    batchStrides: [strides(a), strides(b), strides(c)],
  };
}
