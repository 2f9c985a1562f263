/** @file Short inner axes: reductions and operands in an order in which the columns of a loop are a vector. */
import { type Shape, sizeOf } from '../../program/tensors.js';
import { formOf } from './forms.js';
import { countsOf, type Iteration, splitsOf } from './iteration.js';
import type { Operand, PlacedOp } from './placedOps.js';
import { broadcastView, mergeAxes, type View } from './views.js';

/** Elements of the widest vector. */
const LANES = 16;

/** The last axis from which on there is a vector of elements; 0 where there is none. */
function vectorAxis(shape: Shape): number {
  let axis = shape.length - 1;
  while (axis > 0 && sizeOf(shape.slice(axis)) < LANES) axis--;
  return Math.max(0, axis);
}

/** The axes that a reduction over several, some of them behind kept ones, takes first. */
function firstOf(shape: Shape, gone: readonly number[], kept: readonly number[]): readonly number[] {
  const last = kept.at(-1) ?? -1;
  const behind = gone.filter((axis) => axis > last);
  const before = gone.filter((axis) => axis < last);
  if (before.length === 0 || sizeOf(behind.map((axis) => shape[axis]!)) >= LANES) return behind;
  // Those behind the last kept axis that is before them.
  const group = before.filter((axis) => !kept.some((other) => axis < other && other < before.at(-1)!));
  const leading = group.filter((axis) => axis < vectorAxis(shape));
  return sizeOf(leading.map((axis) => shape[axis]!)) >= LANES ? leading : group;
}

/**
 * The axes of a reduction in passes, each in the order of the operand's memory: [batch, height, width, groups, size] over
 * all but the batch and the groups is a sum of rows [groups, size], and one over the few elements of a group.
 */
export function passesOf(shape: Shape, axes: readonly number[]): (readonly number[])[] {
  const large = shape.map((dim, axis) => (dim > 1 ? axis : -1)).filter((axis) => axis >= 0);
  const kept = large.filter((axis) => !axes.includes(axis));
  const passes: (readonly number[])[] = [];
  let [gone, left] = [large.filter((axis) => axes.includes(axis)), [...shape]];
  if (kept.length === 0) return [axes];
  while (gone.length > 0) {
    const pass = firstOf(left, gone, kept);
    passes.push(pass);
    gone = gone.filter((axis) => !pass.includes(axis));
    left = left.map((dim, axis) => (pass.includes(axis) ? 1 : dim));
  }
  return passes.length > 1 ? passes : [axes];
}

/** A copy of an operand costs little if it has at most this part of the loop's elements. */
const SMALL_PART = 1 / 4;

/** Below this many elements, a loop over short rows costs less than one more loop. */
const LEAST_ELEMENTS = 1 << 12;

/**
 * Replaces operands that would leave a loop short rows, as one number for each group of a few channels does, by copies
 * that have a number for each element of a longer row.
 *
 * @param copyOf a row-major copy of a view.
 */
export function widened(
  op: PlacedOp,
  iteration: Iteration,
  copyOf: (view: View) => View,
): readonly Operand[] {
  const { shape, write } = iteration;
  const isMap = formOf(op.op)?.kind === 'map' && countsOf(op.op) === undefined;
  const size = sizeOf(shape);
  if (!isMap || size < LEAST_ELEMENTS || splitsOf(iteration)[0]!.columns >= LANES) return op.inputs;
  const at = vectorAxis(shape);
  const isVector = (view: View): boolean =>
    mergeAxes(view.shape.slice(at), view.strides.slice(at)).length <= 1;
  const short = (view: View): View => ({
    ...view,
    shape: shape.map((dim, axis) => (axis < at && view.strides[axis] === 0 ? 1 : dim)),
  });
  const reads = op.inputs.map((input) => (typeof input === 'number' ? input : broadcastView(input, shape)));
  const isWide = (read: Operand): read is View => typeof read !== 'number' && !isVector(read);
  const fits = (read: Operand): boolean => !isWide(read) || sizeOf(short(read).shape) <= size * SMALL_PART;
  if (at === 0 || !isVector(write) || !reads.every(fits)) return op.inputs;
  return reads.map((read, i) => (isWide(read) ? broadcastView(copyOf(short(read)), shape) : op.inputs[i]!));
}
