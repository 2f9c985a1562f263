/**
 * @file Hoisting: values that depend only on frozen inputs and constants are computed when these change, not in every
 * run.
 */
import { formOf } from './forms.js';
import { buffersOf, type PlacedOp, writeCounts, writersOf } from './placedOps.js';
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
 * @param ops operations outside of loops.
 * @param frozen numbers of the inputs whose contents persist.
 * @param writes how many operations of the whole program write to each buffer's memory.
 */
export function splitOnce(
  ops: readonly PlacedOp[],
  frozen: ReadonlySet<number>,
  writes: ReadonlyMap<Buffer, number> = writeCounts(ops),
): Split {
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
        // What others write to as well, such as the turns of a loop to its carry, is made anew in every run.
        buffer.home.kind === 'arena' && buffer.size <= MOST_ELEMENTS && writes.get(buffer) === 1,
    );
    // Other ranks take part in every run.
    const form = formOf(op.op);
    const asksRanks = form?.kind === 'call' && form.asksRanks === true;
    if (isOurs && !asksRanks && buffersOf(op.inputs).every(isKept)) once.add(op);
  }
  return {
    once: ops.filter((op) => once.has(op)),
    rest: ops.filter((op) => !once.has(op)),
    isKept,
  };
}
