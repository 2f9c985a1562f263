/**
 * @file Operation order for fusion: small values that depend on nothing large come first, small results that nothing
 * large needs come last.
 */

import { isLoopOp } from './iteration.js';
import { buffersOf, type PlacedOp, writersOf } from './placedOps.js';
import type { Buffer } from './views.js';

/** Most elements of a small value. */
const SMALL = 1 << 14;
/** Below this many elements, the work is negligible. */
const TINY = 64;

/**
 * Scalars between the forward and the backward pass, such as a loss or the weight of a batch, would end loops and
 * chains early. What they depend on moves to the front where possible; the rest moves to the end.
 */
export function orderForFusion(ops: readonly PlacedOp[]): PlacedOp[] {
  const writers = writersOf(ops);
  const early = new Set<PlacedOp>();
  for (const op of ops) {
    const inputs = buffersOf(op.inputs);
    const fits =
      isLoopOp(op.op) &&
      [...inputs, ...op.outputs.map(({ buffer }) => buffer)].every(({ size }) => size <= SMALL);
    const ready = [...inputs, ...(op.after ?? [])].every((buffer) =>
      (writers.get(buffer) ?? []).every((writer) => early.has(writer)),
    );
    // A buffer written in several pieces is completed in place.
    const alone = op.outputs.every(({ buffer }) => writers.get(buffer)!.length === 1);
    if (fits && ready && alone && op.op !== 'GatherV2') early.add(op);
  }
  const readers = new Map<Buffer, PlacedOp[]>();
  for (const op of ops)
    for (const buffer of [...buffersOf(op.inputs), ...(op.after ?? [])])
      readers.set(buffer, [...(readers.get(buffer) ?? []), op]);
  const late = new Set<PlacedOp>();
  for (let i = ops.length - 1; i >= 0; i--) {
    const op = ops[i]!;
    if (early.has(op) || !isLoopOp(op.op)) continue;
    const buffers = [...buffersOf(op.inputs), ...op.outputs.map(({ buffer }) => buffer)];
    const isTiny = buffers.every(({ size }) => size <= TINY);
    // What reads it, and what writes over a part of it, stays behind it.
    const isLast = op.outputs.every(({ buffer }) => {
      const written = writers.get(buffer)!;
      const followers = [...(readers.get(buffer) ?? []), ...written.slice(written.indexOf(op) + 1)];
      return followers.every((follower) => follower === op || late.has(follower));
    });
    if (isTiny && isLast) late.add(op);
  }
  const middle = ops.filter((op) => !early.has(op) && !late.has(op));
  return [...ops.filter((op) => early.has(op)), ...middle, ...ops.filter((op) => late.has(op))];
}
