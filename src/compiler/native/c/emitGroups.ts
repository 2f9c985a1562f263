/** @file C calls of the runtime for products of groups of rows. */
import type { CallUnit } from '../plan/units.js';
import type { View } from '../plan/views.js';
import type { Needs } from './cFunctions.js';
import { callPrecision, typeName } from './cNames.js';

type PointerOf = (view: View) => string;

/** A matrix whose rows and columns are these axes. */
const matrix = (view: View, [rows, columns]: readonly [number, number], pointer: PointerOf): string =>
  `(lt_matrix){${pointer(view)}, ${typeName(view.buffer)}, ${view.strides[rows]!}, ${view.strides[columns]!}}`;

/** The descriptor of the groups. */
const groups = (x: View, sizes: View, pointer: PointerOf): string =>
  `const lt_groups groups = {${sizes.shape[0]!}, ${x.shape[0]!}, ${pointer(sizes)}};`;

/** The rows of each group by its matrix. */
export function groupedProducts(
  unit: CallUnit,
  pointer: PointerOf,
  needs: Needs,
  place: () => string,
): string[] {
  const [x, w, sizes] = unit.inputs as [View, View, View];
  const y = unit.outputs[0]!;
  const p = callPrecision(unit);
  const [rows, k] = x.shape as [number, number];
  const n = y.shape[1]!;
  needs.workspace.add(
    `lt_group_rows_bytes(${p}, ${typeName(y.buffer)}, ${w.shape[0]!}, ${rows}, ${k}, ${n})`,
  );
  const operands = [
    matrix(x, [0, 1], pointer),
    matrix(w, unit.attrs.transposeB ? [2, 1] : [1, 2], pointer),
    w.strides[0]!,
    k,
    n,
    matrix(y, [0, 1], pointer),
  ];
  return [
    groups(x, sizes, pointer),
    `lt_group_rows(${p}, &groups, ${operands.join(', ')}, ${place()}, frame->thread, frame->threads);`,
  ];
}

/** The gradient by the matrices. */
export function groupedSums(unit: CallUnit, pointer: PointerOf, needs: Needs, place: () => string): string[] {
  const [x, dy, sizes] = unit.inputs as [View, View, View];
  const p = callPrecision(unit);
  const [m, n] = [x.shape[1]!, dy.shape[1]!];
  needs.workspace.add(`lt_group_sums_bytes(${p}, ${sizes.shape[0]!}, ${x.shape[0]!}, ${m}, ${n})`);
  const operands = [matrix(x, [0, 1], pointer), matrix(dy, [0, 1], pointer), m, n, pointer(unit.outputs[0]!)];
  return [
    groups(x, sizes, pointer),
    `lt_group_sums(${p}, &groups, ${operands.join(', ')}, ${place()}, frame->thread, frame->threads);`,
  ];
}
