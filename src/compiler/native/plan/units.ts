/** @file Units of a program: loops, products, and calls of the runtime. */
import type { CallForm } from '../../rules/deviceForm.js';
import type { LoopNode } from './iteration.js';
import type { PlacedOp } from './placedOps.js';
import type { ProductUnit } from './products.js';
import type { Buffer, View } from './views.js';

/** A fused loop: elementwise operations and reductions over the same rows and columns, in one function. */
export interface LoopUnit {
  readonly kind: 'loop';
  readonly rows: number;
  /** 0 where every node has one value per row. */
  columns: number;
  readonly nodes: LoopNode[];
}

/** An operation that the runtime, or a dedicated loop, performs as a whole. */
export interface CallUnit {
  readonly kind: 'call';
  readonly op: string;
  readonly form: CallForm;
  readonly inputs: readonly View[];
  readonly outputs: readonly View[];
  readonly attrs: PlacedOp['attrs'];
  readonly scope: string;
  readonly after?: PlacedOp['after'];
}

export type Unit = LoopUnit | ProductUnit | CallUnit;

/** The buffers that a unit waits for without reading them; see `PlacedOp.after`. */
export function waitsOf(unit: Unit): readonly Buffer[] {
  if (unit.kind !== 'loop') return unit.after ?? [];
  return unit.nodes.flatMap(({ after }) => after ?? []);
}

/** The buffers that a unit reads. */
export function readsOf(unit: Unit): Buffer[] {
  if (unit.kind === 'product') return [unit.a.buffer, unit.b.buffer, ...(unit.sum ? [unit.sum] : [])];
  if (unit.kind !== 'loop') return unit.inputs.map(({ buffer }) => buffer);
  return unit.nodes.flatMap(({ reads }) =>
    reads.flatMap((read) => (typeof read === 'number' ? [] : [read.buffer])),
  );
}

/** The buffers that a unit writes. */
export function writesOf(unit: Unit): Buffer[] {
  if (unit.kind === 'product') return [unit.c.buffer];
  if (unit.kind !== 'loop') return unit.outputs.map(({ buffer }) => buffer);
  return unit.nodes.map(({ write }) => write.buffer);
}
