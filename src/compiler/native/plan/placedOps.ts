/** @file Placed operations: nodes whose operands are views of buffers. */
import type { Attrs } from '../../program/ir.js';
import type { DType } from '../../program/tensors.js';
import { type Buffer, rootOf, type View } from './views.js';

/** An operand: elements of a buffer, or one number for all elements. */
export type Operand = View | number;

/** A node that computes or copies, with the views of its operands. */
export interface PlacedOp {
  readonly op: string;
  readonly inputs: readonly Operand[];
  /** dtypes of the inputs. */
  readonly types: readonly DType[];
  readonly outputs: readonly View[];
  readonly attrs: Attrs;
  readonly scope: string;
  /** Where it reads behind barriers, what these wait for: it is not moved before that is written. */
  readonly after?: readonly Buffer[];
}

/** The operations that write each buffer, in order; those that write a slice of it are not among them. */
export function writersOf(ops: readonly PlacedOp[]): Map<Buffer, PlacedOp[]> {
  const writers = new Map<Buffer, PlacedOp[]>();
  for (const op of ops)
    for (const { buffer } of op.outputs) writers.set(buffer, [...(writers.get(buffer) ?? []), op]);
  return writers;
}

/** How many operations write to the memory of each buffer, be it the whole or a slice. */
export function writeCounts(ops: readonly PlacedOp[]): Map<Buffer, number> {
  const counts = new Map<Buffer, number>();
  for (const { outputs } of ops)
    for (const root of new Set(outputs.map(({ buffer }) => rootOf(buffer))))
      counts.set(root, (counts.get(root) ?? 0) + 1);
  return counts;
}

/** The buffers of operands. */
export const buffersOf = (operands: readonly Operand[]): Buffer[] =>
  operands.flatMap((operand) => (typeof operand === 'number' ? [] : [operand.buffer]));
