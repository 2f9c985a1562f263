/** @file Forms of operands: which strides and storage each placed operation reads and writes. */
import { operandStorage, precisionOf } from '../../program/precision.js';
import type { NarrowFloat, NarrowType } from '../../program/tensors.js';
import { formOf } from './forms.js';
import { isLoopOp } from './iteration.js';
import type { PlacedOp } from './placedOps.js';
import { isContiguous, isNarrow, type View } from './views.js';

/** Whether an operation can take a number for an operand whose elements are all equal. */
export const takesNumbers = (op: string): boolean => formOf(op)?.kind === 'map';

/** Operations that fill what their inputs are joined, repeated or padded to. */
const JOINS: readonly string[] = ['Concat', 'Pack'];

/** Whether an operation can write its result with a view's strides. */
export function writesTo(op: string, view: View): boolean {
  if (isLoopOp(op) || JOINS.includes(op)) return true;
  const form = formOf(op);
  const writesRows = form?.kind === 'product' || (form?.kind === 'call' && form.writesRows === true);
  const inRows = view.strides.at(-1) === 1 && view.strides.every((stride) => stride > 0);
  return inRows && (writesRows || isContiguous(view));
}

/** Narrow storage that products and calls read and write as they do float32. */
const CALL_STORAGE: NarrowFloat = 'bfloat16';

/** Storages in which calls change memory in place. */
export const CALL_STORAGES: readonly NarrowType[] = [CALL_STORAGE, 'int8'];

/** How many leading operands an operation reads in that storage. */
function narrowOperands({ op, attrs }: PlacedOp): number {
  const form = formOf(op);
  if (form?.kind === 'product') return 2;
  if (form?.kind !== 'call') return 0;
  const isRounded = operandStorage(precisionOf(attrs)) === CALL_STORAGE;
  return form.narrowOperands ?? (isRounded ? (form.rounds?.operands ?? 0) : 0);
}

/** Whether an operation reads a row-major copy in place of operand `index`. */
export function wantsCopy(placed: PlacedOp, operand: View, index: number): boolean {
  const form = formOf(placed.op);
  const { storage } = operand.buffer;
  if (isLoopOp(placed.op)) return false;
  const readsCodes =
    form?.kind === 'call' &&
    (form.codes === index || (storage === 'int8' && form.bytes?.includes(index) === true));
  const readsNarrow = readsCodes || (storage === CALL_STORAGE && index < narrowOperands(placed));
  if (isNarrow(storage) && !readsNarrow) return true;
  if (form?.kind !== 'call') return false;
  const { inRows = 0, contiguous = [], contiguousInts = false } = form;
  const hasGaps = index < inRows && operand.strides.at(-1) !== 1 && operand.shape.at(-1) !== 1;
  const isInts = contiguousInts && storage === 'int32';
  const isScattered = (contiguous.includes(index) || isInts) && !isContiguous(operand);
  return hasGaps || isScattered;
}
