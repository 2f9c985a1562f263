/**
 * @file Shares of calls: where a thread touches the same items of a buffer in one call and the next, no barrier is needed.
 */
import type { CallUnit, Unit } from './units.js';
import type { Buffer, View } from './views.js';

/** A buffer as so many items, one after another, of which threads take equal shares in their order. */
export interface Share {
  readonly buffer: Buffer;
  readonly items: number;
  /** Elements of an item. */
  readonly size: number;
  readonly offset: number;
}

/** LT_FEW of attention.h: up to so many queries, threads share the heads of all items of a batch. */
const FEW_QUERIES = 4;

/** The items that two axes of a view make, where the axes behind stay within them; null where there are none. */
function itemsOf({ buffer, shape, strides, offset }: View, [outer, inner]: [number, number]): Share | null {
  const size = strides[inner]!;
  const isWhole = strides[outer] === size * shape[inner]!;
  const last = shape.reduce((end, dim, axis) => {
    return axis === outer || axis === inner ? end : end + (dim - 1) * strides[axis]!;
  }, 0);
  return isWhole && last < size ? { buffer, items: shape[outer]! * shape[inner]!, size, offset } : null;
}

/** The keys and values of an attention of few queries, by batch and head. */
function sharesRead({ kind, inputs }: CallUnit): (Share | null)[] {
  if (kind !== 'attention' || inputs[0]!.shape[1]! > FEW_QUERIES) return [];
  return inputs.slice(1, 3).map((view) => itemsOf(view, [0, 2]));
}

/** What a slice [B, N, S, H] is written to, by batch and head. */
function sharesWritten({ kind, outputs, attrs }: CallUnit): (Share | null)[] {
  const [out] = outputs;
  return kind === 'updateSlice' && out!.shape.length === 4 && attrs.axis === 2 ? [itemsOf(out!, [0, 1])] : [];
}

/** What a unit touches by shares; `way` says whether it is asked for what it reads or writes. */
export function sharesOf(unit: Unit, way: 'read' | 'written'): Share[] {
  if (unit.kind === 'loop' || unit.kind === 'product') return [];
  const shares = way === 'read' ? sharesRead(unit) : sharesWritten(unit);
  return shares.filter((share) => share !== null);
}

/** Whether a thread's items of one are its items of the other. */
export const sameShare = (x: Share, y: Share): boolean =>
  x.buffer === y.buffer && x.items === y.items && x.size === y.size && x.offset === y.offset;
