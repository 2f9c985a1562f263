/** @file Forms of operands: which strides and storage each placed operation reads and writes. */
import type { Attrs } from '../ir.js';
import { EXPRESSIONS } from './expressions.js';
import { isLoopOp } from './iteration.js';
import type { PlacedOp } from './placedOps.js';
import { isContiguous, type View } from './views.js';

/** Operations that elementwise readers replace by a number, and that number. */
export const FILLS: Readonly<Record<string, (attrs: Attrs) => number>> = {
  Fill: ({ value }) => Number(value),
  ZerosLike: () => 0,
  OnesLike: () => 1,
};

/** Whether an operation can take a number for an operand whose elements are all equal. */
export const takesNumbers = (op: string): boolean => EXPRESSIONS[op] !== undefined;

/** Whether an operation can write its result with a view's strides. */
export function writesTo(op: string, view: View): boolean {
  if (isLoopOp(op) || op === 'Concat' || op === 'Pack') return true;
  const inRows = view.strides.at(-1) === 1 && view.strides.every((stride) => stride > 0);
  return (
    inRows && (op === 'BatchMatMul' || op === 'Attention' || op === 'AttentionGrad' || isContiguous(view))
  );
}

/** What the runtime's functions want of an operand. */
interface Form {
  /** How many leading operands have a contiguous last axis: heads of attention, channels of images. */
  readonly inRows?: number;
  /** The operands that are row-major as a whole. */
  readonly contiguous?: readonly number[];
  /** Whether operands of whole numbers are row-major as well. */
  readonly contiguousInts?: boolean;
  /** Whether all are float32, also where the graph's inputs are stored in bfloat16. */
  readonly isFloat32?: boolean;
}

const FORMS: Readonly<Record<string, Form>> = {
  Attention: { inRows: 3, contiguousInts: true },
  AttentionGrad: { inRows: 5, contiguousInts: true },
  AttentionMaskGrad: { inRows: 5, contiguousInts: true },
  Conv2D: { inRows: 1, isFloat32: true },
  Conv2DBackpropInput: { inRows: 1, isFloat32: true },
  Conv2DBackpropFilter: { inRows: 2, isFloat32: true },
  DepthwiseConv2dNative: { inRows: 1, contiguous: [1], isFloat32: true },
  DepthwiseConv2dNativeBackpropInput: { inRows: 1, contiguous: [1], isFloat32: true },
  DepthwiseConv2dNativeBackpropFilter: { inRows: 2, isFloat32: true },
  UnsortedSegmentSum: { contiguous: [0, 1] },
  Cumsum: { isFloat32: true },
  TopK: { isFloat32: true },
};

/** Whether an operation reads a row-major copy in place of operand `index`. */
export function wantsCopy({ op }: PlacedOp, operand: View, index: number): boolean {
  const { inRows = 0, contiguous = [], contiguousInts, isFloat32 = false } = FORMS[op] ?? {};
  const hasGaps = index < inRows && operand.strides.at(-1) !== 1 && operand.shape.at(-1) !== 1;
  const isInts = contiguousInts && operand.buffer.storage === 'int32';
  const isScattered = (contiguous.includes(index) || isInts) && !isContiguous(operand);
  return hasGaps || isScattered || (isFloat32 && operand.buffer.storage === 'bfloat16');
}
