/** @file Loops and choices among placed operations, and buffers that are slices of others, one for each turn. */
import type { PlacedOp } from './placedOps.js';
import { type Unit, writesOf } from './units.js';
import { type Buffer, type Loop, rootOf } from './views.js';

/** Begin or end of a loop in a list of operations. */
export interface Marker extends PlacedOp {
  readonly op: 'Begin' | 'End';
  readonly loop: Loop;
}

export const marker = (op: Marker['op'], loop: Loop): Marker => ({
  ...{ op, loop, inputs: [], types: [], outputs: [], attrs: {}, scope: '' },
});

const isMarker = (op: PlacedOp): op is Marker => 'loop' in op;

/** Consecutive operations within the same loops. */
export interface Segment {
  /** The marker in front of it; undefined for the first one. */
  readonly after: Marker | undefined;
  /** The loops that it is in, the innermost last. */
  readonly loops: readonly Loop[];
  readonly ops: readonly PlacedOp[];
}

/** Splits operations at the markers. */
export function segmentsOf(ops: readonly PlacedOp[]): Segment[] {
  const segments: Segment[] = [];
  let [after, loops, own]: [Marker | undefined, Loop[], PlacedOp[]] = [undefined, [], []];
  for (const op of ops) {
    if (!isMarker(op)) {
      own.push(op);
      continue;
    }
    segments.push({ after, loops, ops: own });
    loops = op.op === 'Begin' ? [...loops, op.loop] : loops.slice(0, -1);
    [after, own] = [op, []];
  }
  segments.push({ after, loops, ops: own });
  return segments;
}

/** Whether all turns of a loop read the same from a buffer, which can be packed before the loop. */
export function isSteady(
  loop: Loop,
  units: readonly (readonly [loops: readonly Loop[], units: readonly Unit[]])[],
): (buffer: Buffer) => boolean {
  const within = units.filter(([loops]) => loops.includes(loop)).flatMap(([, some]) => some);
  // An inner loop writes slices of its stacked results.
  const written = new Set(within.flatMap(writesOf).map(rootOf));
  return (buffer) => loop.predicate === undefined && rootOf(buffer) === buffer && !written.has(buffer);
}
