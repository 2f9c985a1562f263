/**
 * @file Thread shares of calls: no barrier is needed where a thread accesses the same items of a buffer in consecutive
 * calls.
 */
import type { Unit } from './units.js';
import type { Buffer, View } from './views.js';

/** A buffer as consecutive items, of which threads take equal contiguous shares. */
export interface Share {
  readonly buffer: Buffer;
  readonly items: number;
  /** Elements per item. */
  readonly size: number;
  readonly offset: number;
}

/** The items that two axes of a view index, if the other axes stay within an item; else null. */
function itemsOf(
  { buffer, shape, strides, offset }: View,
  [outer, inner]: readonly [number, number],
): Share | null {
  const size = strides[inner]!;
  const isWhole = strides[outer] === size * shape[inner]!;
  const last = shape.reduce((end, dim, axis) => {
    return axis === outer || axis === inner ? end : end + (dim - 1) * strides[axis]!;
  }, 0);
  return isWhole && last < size ? { buffer, items: shape[outer]! * shape[inner]!, size, offset } : null;
}

/** Buffers that a unit reads, or writes, by shares. */
export function sharesOf(unit: Unit, way: 'read' | 'written'): Share[] {
  if (unit.kind !== 'call') return [];
  const { form, inputs, outputs, attrs } = unit;
  const views = way === 'read' ? inputs : outputs;
  const items = form.shares?.(inputs, outputs, attrs)[way] ?? [];
  return items.flatMap(([i, axes]) => itemsOf(views[i]!, axes) ?? []);
}

/** Whether a thread has the same items in both. */
export const sameShare = (x: Share, y: Share): boolean =>
  x.buffer === y.buffer && x.items === y.items && x.size === y.size && x.offset === y.offset;
