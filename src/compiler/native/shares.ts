/**
 * @file Thread shares of calls: no barrier is needed where a thread accesses the same items of a buffer in consecutive
 * calls.
 */
import type { CallUnit, Unit } from './units.js';
import type { Buffer, View } from './views.js';

/** A buffer as consecutive items, of which threads take equal contiguous shares. */
export interface Share {
  readonly buffer: Buffer;
  readonly items: number;
  /** Elements per item. */
  readonly size: number;
  readonly offset: number;
}

/** LT_FEW of attention.h: up to this many queries, threads divide the heads of all batch items. */
const FEW_QUERIES = 4;

/** The items that two axes of a view index, if the other axes stay within an item; else null. */
function itemsOf({ buffer, shape, strides, offset }: View, [outer, inner]: [number, number]): Share | null {
  const size = strides[inner]!;
  const isWhole = strides[outer] === size * shape[inner]!;
  const last = shape.reduce((end, dim, axis) => {
    return axis === outer || axis === inner ? end : end + (dim - 1) * strides[axis]!;
  }, 0);
  return isWhole && last < size ? { buffer, items: shape[outer]! * shape[inner]!, size, offset } : null;
}

/** Keys and values of an attention of few queries, by batch and head. */
function sharesRead({ kind, inputs }: CallUnit): (Share | null)[] {
  if (kind !== 'attention' || inputs[0]!.shape[1]! > FEW_QUERIES) return [];
  return inputs.slice(1, 3).map((view) => itemsOf(view, [0, 2]));
}

/** The slice [B, N, S, H] that an update writes, by batch and head. */
function sharesWritten({ kind, outputs, attrs }: CallUnit): (Share | null)[] {
  const [out] = outputs;
  return kind === 'updateSlice' && out!.shape.length === 4 && attrs.axis === 2 ? [itemsOf(out!, [0, 1])] : [];
}

/** Buffers that a unit reads, or writes, by shares. */
export function sharesOf(unit: Unit, way: 'read' | 'written'): Share[] {
  if (unit.kind === 'loop' || unit.kind === 'product') return [];
  const shares = way === 'read' ? sharesRead(unit) : sharesWritten(unit);
  return shares.filter((share) => share !== null);
}

/** Whether a thread has the same items in both. */
export const sameShare = (x: Share, y: Share): boolean =>
  x.buffer === y.buffer && x.items === y.items && x.size === y.size && x.offset === y.offset;
