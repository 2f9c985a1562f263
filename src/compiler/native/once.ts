/** @file Values that follow from frozen inputs and constants alone, computed when these change and not at every run. */
import { buffersOf, type PlacedOp, writersOf } from './placedOps.js';
import type { Buffer } from './views.js';

/** Larger results would be kept in memory for the little that they cost. */
const MOST_ELEMENTS = 1 << 14;

/** A program's operations in two parts. */
export interface Split {
  /** Those that need not run again. */
  readonly once: readonly PlacedOp[];
  readonly rest: readonly PlacedOp[];
  /** Whether a buffer's contents stay from run to run. */
  readonly isKept: (buffer: Buffer) => boolean;
}

/**
 * Takes apart what small operations make of inputs that stay.
 *
 * @param frozen the inputs, by their number, whose contents stay.
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
        // Buffers of several parts are completed where they are.
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
