/** @file Iteration spaces: an elementwise operation or reduction as loops over rows and columns. */

import type { DType, Shape } from '../../program/tensors.js';
import type { DeviceForm, MapForm } from '../../rules/deviceForm.js';
import { formOf } from './forms.js';
import type { Operand, PlacedOp } from './placedOps.js';
import { type Buffer, broadcastView, mergeAxes, type Run, type View } from './views.js';

/**
 * Role of a loop node: keeps every value (`map`), or reduces over each row, over the rows of each column (all of them, or
 * those of each item), or over everything.
 */
type Role = 'map' | 'row' | 'column' | 'all';

/** Address of element (r, j): `rows` give the row's offset, outermost run first, `column` the step between columns. */
export interface Access {
  readonly buffer: Buffer;
  readonly offset: number;
  readonly rows: readonly Run[];
  readonly column: number;
}

/** An operation over an index space, before its axes are split into rows and columns. */
export interface Iteration {
  readonly role: Role;
  readonly shape: Shape;
  /** Operands and result, with strides along every axis of `shape`. */
  readonly reads: readonly Operand[];
  readonly write: View;
  /** For role 'row', axes from here on are reduced; for 'column', axes before it. */
  readonly boundary: number | null;
  /** For role 'column', how many consecutive rows one result reduces: all of them, or those of an item. */
  readonly period?: number;
  /** Whether the expression needs the index along the last axis. */
  readonly needsIndex: boolean;
}

/** An iteration with its axes split: leading ones are rows, the others columns. */
export interface Split {
  readonly rows: number;
  readonly columns: number;
  readonly reads: readonly (Access | number)[];
  readonly write: Access;
}

/** A node of a loop. */
export interface LoopNode {
  readonly op: string;
  readonly role: Role;
  readonly attrs: PlacedOp['attrs'];
  readonly scope: string;
  /** Whether it computes a value per column, instead of one per row. */
  readonly wide: boolean;
  readonly reads: readonly (Access | number)[];
  readonly types: readonly DType[];
  readonly write: Access;
  readonly result: DType;
  /** For role 'column', as in `Iteration`. */
  readonly period?: number;
  readonly after?: PlacedOp['after'];
}

const product = (sizes: readonly number[]): number => sizes.reduce((a, b) => a * b, 1);

const kindOf = (op: string): DeviceForm['kind'] | undefined => formOf(op)?.kind;

/** The axis that an operation's expression counts. */
export function countsOf(op: string): MapForm['counts'] {
  const form = formOf(op);
  return form?.kind === 'map' ? form.counts : undefined;
}

/** Whether loops compute an operation. */
export const isLoopOp = (op: string): boolean => ITERATIONS[kindOf(op)!] !== undefined;

/** The result of a reduction, with stride 0 along reduced axes. */
function overReduced(write: View, x: View, axes: readonly number[], keepDims: boolean): View {
  let next = 0;
  const strides = x.shape.map((_, axis) => {
    const isReduced = axes.includes(axis);
    const stride = isReduced ? 0 : write.strides[next]!;
    if (!isReduced || keepDims) next++;
    return stride;
  });
  return { ...write, shape: x.shape, strides };
}

const permuted = (view: View, order: readonly number[]): View => ({
  ...view,
  shape: order.map((axis) => view.shape[axis]!),
  strides: order.map((axis) => view.strides[axis]!),
});

/** Up to this many elements, one thread is as fast as several with a barrier between them. */
const MOST_OF_A_ROW = 1 << 14;

/** Whether a reduction over rows has only one row. */
const isOneRow = ({ shape }: View, axes: readonly number[]): boolean =>
  axes.length > 0 &&
  product(shape) <= MOST_OF_A_ROW &&
  axes.length === shape.length - Math.min(...axes) &&
  Math.min(...axes) > 0;

/** With fewer columns, a row of an item is no vector. */
const LEAST_COLUMNS = 8;

/**
 * Whether a reduction adds up rows: of all, or of each item, where that is the order of the operand's memory.
 *
 * @param inner the kept axes behind the reduced ones, and `outer` those before the last of these.
 */
function addsRows(
  x: View,
  gone: readonly number[],
  inner: readonly number[],
  outer: readonly number[],
): boolean {
  if (gone.length === 0 || inner.length === 0) return false;
  if (outer.length === 0) return true;
  const step = (axis: number): number => Math.abs(x.strides[axis]!);
  return (
    product(inner.map((axis) => x.shape[axis]!)) >= LEAST_COLUMNS && step(inner.at(-1)!) < step(gone.at(-1)!)
  );
}

/** The iteration of a reduction. Unless it adds up rows, reduced axes are moved last. */
function reduction({ op, inputs, outputs, attrs }: PlacedOp): Iteration {
  const x = inputs.find((input): input is View => typeof input !== 'number')!;
  const axes = attrs.axes as readonly number[];
  const write = overReduced(outputs[0]!, x, axes, attrs.keepDims as boolean);
  const reads = inputs.map((input) => (typeof input === 'number' ? input : broadcastView(input, x.shape)));
  const large = x.shape.map((dim, axis) => (dim > 1 ? axis : -1)).filter((axis) => axis >= 0);
  const kept = large.filter((axis) => !axes.includes(axis));
  const gone = large.filter((axis) => axes.includes(axis));
  const isArg = kindOf(op) === 'first';
  const isRow = isArg || (kept.length === 0 && isOneRow(x, axes));
  const inner = kept.filter((axis) => axis > Math.max(...gone));
  const outer = kept.filter((axis) => axis < Math.max(...gone));
  const isColumn = !isRow && addsRows(x, gone, inner, outer);
  const role: Role = kept.length === 0 && !isRow ? 'all' : isColumn ? 'column' : 'row';
  const order = isColumn ? [...outer, ...gone, ...inner] : [...kept, ...gone];
  const rows = isColumn ? outer.length + gone.length : kept.length;
  return {
    role,
    shape: order.map((axis) => x.shape[axis]!),
    reads: reads.map((read) => (typeof read === 'number' ? read : permuted(read, order))),
    write: permuted(write, order),
    boundary: role === 'all' ? null : rows,
    needsIndex: isArg,
    ...(isColumn && { period: product(gone.map((axis) => x.shape[axis]!)) }),
  };
}

/** The axes of a reduction's operand in an order in which they merge: kept axes first, then reduced ones. */
export function reductionOrder({ inputs, attrs }: PlacedOp): number[] {
  const axes = attrs.axes as readonly number[];
  const all = (inputs.find((input) => typeof input !== 'number') as View).shape.map((_, axis) => axis);
  return [...all.filter((axis) => !axes.includes(axis)), ...all.filter((axis) => axes.includes(axis))];
}

/** Rows of a table: the index axes replace the table's axis, and only the index moves along them. */
function gather({ inputs, outputs, attrs }: PlacedOp): Iteration {
  const [x, indices] = inputs as readonly [View, View];
  const axis = attrs.axis as number;
  const { shape } = outputs[0]!;
  const after = x.shape.length - axis - 1;
  const index = {
    ...indices,
    shape: [...indices.shape, ...new Array<number>(after).fill(1)],
    strides: [...indices.strides, ...new Array<number>(after).fill(0)],
  };
  const table: View = {
    ...x,
    shape,
    strides: [...x.strides.slice(0, axis), ...indices.shape.map(() => 0), ...x.strides.slice(axis + 1)],
  };
  return {
    role: 'map',
    shape,
    reads: [table, broadcastView(index, shape)],
    write: outputs[0]!,
    boundary: null,
    needsIndex: false,
  };
}

/** An expression on each element. */
function map({ op, inputs, outputs }: PlacedOp): Iteration {
  const write = outputs[0]!;
  const { shape } = write;
  const isOneHot = countsOf(op) === 'columns';
  const reads = inputs.map((input) => {
    if (typeof input === 'number') return input;
    const view = isOneHot ? { ...input, shape: [...input.shape, 1], strides: [...input.strides, 0] } : input;
    return broadcastView(view, shape);
  });
  return { role: 'map', shape, reads, write, boundary: null, needsIndex: isOneHot };
}

/** Iterations by the kind of an operation's form. */
const ITERATIONS: Partial<Record<DeviceForm['kind'], (op: PlacedOp) => Iteration>> = {
  map,
  gather,
  reduction,
  first: reduction,
};

/** The iteration of an operation that `isLoopOp` accepts. */
export const iterationOf = (op: PlacedOp): Iteration => ITERATIONS[kindOf(op.op)!]!(op);

function accessAt(view: View, split: number): Access | null {
  const columns = mergeAxes(view.shape.slice(split), view.strides.slice(split));
  if (columns.length > 1) return null;
  return {
    buffer: view.buffer,
    offset: view.offset,
    rows: mergeAxes(view.shape.slice(0, split), view.strides.slice(0, split)),
    column: columns[0]?.stride ?? 0,
  };
}

/** Splits an iteration before axis `at`; null where some operand's columns have no common stride. */
function splitAt(iteration: Iteration, at: number): Split | null {
  const { boundary, needsIndex, shape } = iteration;
  if (boundary !== null && boundary !== at) return null;
  if (needsIndex && boundary === null && at !== shape.length - 1) return null;
  const reads = iteration.reads.map((read) => (typeof read === 'number' ? read : accessAt(read, at)));
  const write = accessAt(iteration.write, at);
  if (write === null || reads.some((read) => read === null)) return null;
  return {
    rows: product(shape.slice(0, at)),
    columns: product(shape.slice(at)),
    reads: reads as (Access | number)[],
    write,
  };
}

/** All splits that the operands' strides allow, fewest rows first. */
export function splitsOf(iteration: Iteration): Split[] {
  const splits: Split[] = [];
  for (let at = 0; at <= iteration.shape.length; at++) {
    const split = splitAt(iteration, at);
    if (split !== null && !splits.some(({ rows }) => rows === split.rows)) splits.push(split);
  }
  return splits;
}

/** Fewer rows, or columns, are no reason to take one axis for two: threads divide rows, and a vector has so many columns. */
const [LEAST_ROWS_WITHIN, LEAST_COLUMNS_WITHIN] = [32, 16];

/**
 * The split of an elementwise iteration into so many rows, where these end within an axis: of [rows * columns] elements. null
 * where they end at an axis, which `splitsOf` has, do not divide it, or where they are few.
 */
export function splitWithin(iteration: Iteration, rows: number): Split | null {
  const { role, shape, needsIndex } = iteration;
  if (role !== 'map' || needsIndex) return null;
  let [axis, before] = [0, 1];
  while (axis < shape.length && before * shape[axis]! <= rows) before *= shape[axis++]!;
  const outer = rows / before;
  const inner = (shape[axis] ?? 0) / outer;
  if (outer === 1 || !Number.isInteger(outer) || !Number.isInteger(inner)) return null;
  if (rows < LEAST_ROWS_WITHIN || inner < LEAST_COLUMNS_WITHIN) return null;
  const parted = (view: View): View => {
    const stride = view.strides[axis]!;
    return {
      ...view,
      shape: view.shape.toSpliced(axis, 1, outer, inner),
      strides: view.strides.toSpliced(axis, 1, stride * inner, stride),
    };
  };
  const reads = iteration.reads.map((read) => (typeof read === 'number' ? read : parted(read)));
  const write = parted(iteration.write);
  return splitAt({ ...iteration, shape: write.shape, reads, write }, axis + 1);
}

/** Whether two accesses reach the same elements in the same order. */
export const sameAccess = (a: Access, b: Access): boolean =>
  a.buffer === b.buffer &&
  a.offset === b.offset &&
  a.column === b.column &&
  a.rows.length === b.rows.length &&
  a.rows.every((run, i) => run.size === b.rows[i]!.size && run.stride === b.rows[i]!.stride);
