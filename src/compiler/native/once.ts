/**
 * @file Hoisting: values that depend only on frozen inputs and constants are computed when these change, not in every
 * run.
 */
import { buffersOf, type PlacedOp, writersOf } from './placedOps.js';
import type { Buffer } from './views.js';

/** Larger results would occupy memory for little gain. */
const MOST_ELEMENTS = 1 << 14;

/** Operations split by how often they run. */
export interface Split {
  /** Operations that run only after a change. */
  readonly once: readonly PlacedOp[];
  readonly rest: readonly PlacedOp[];
  /** Whether a buffer's contents persist between runs. */
  readonly isKept: (buffer: Buffer) => boolean;
}

/**
 * Separates the small operations that depend only on persistent inputs.
 *
 * @param frozen numbers of the inputs whose contents persist.
 */
export function splitOnce(ops: readonly PlacedOp[], frozen: ReadonlySet<number>): Split {
  const writers = writersOf(ops);
  const once = new Set<PlacedOp>();
  const isKept = (buffer: Buffer): boolean => {
    const { home } = buffer;
    if (home.kind === 'constant') return true;
    if (home.kind === 'input') return frozen.has(home.index);
    const made = writers.get(buffer) ?? [];
    return made.length > 0 && made.every((op) => once.has(op));
  };
  for (const op of ops) {
    const isOurs = op.outputs.every(
      ({ buffer }) =>
        // A buffer written in several pieces is completed in place.
        buffer.home.kind === 'arena' && buffer.size <= MOST_ELEMENTS && writers.get(buffer)!.length === 1,
    );
    if (isOurs && buffersOf(op.inputs).every(isKept)) once.add(op);
  }
  return {
    once: ops.filter((op) => once.has(op)),
    rest: ops.filter((op) => !once.has(op)),
    isKept,
  };
}
