/** @file Memory planning: buffers of one block overlap where their lifetimes don't. */
import { touchedReads, touchedWrites } from './chainRows.js';
import type { Chain } from './stages.js';
import { rowLength } from './storage.js';
import { type Plan, readsOfStep, writesOfStep } from './threadSteps.js';
import { type Buffer, type Loop, rootOf, storageBytes, turnsOf } from './views.js';

/** Request for `bytes` bytes from time `from` to time `to`, both inclusive. */
interface Interval {
  readonly bytes: number;
  readonly from: number;
  readonly to: number;
  offset: number;
}

/** Buffers start at cache lines. */
const ALIGNMENT = 64;

/** Bytes of this many elements of a buffer. */
export const bufferBytes = ({ storage }: Buffer, elements: number): number =>
  Math.ceil((elements * storageBytes(storage)) / ALIGNMENT) * ALIGNMENT;

/** Gives each interval, largest first, the lowest offset free for its whole time; returns the total bytes. */
export function firstFit(intervals: readonly Interval[]): number {
  const placed: Interval[] = [];
  let end = 0;
  for (const interval of [...intervals].sort((a, b) => b.bytes - a.bytes || a.from - b.from)) {
    const others = placed
      .filter((other) => other.from <= interval.to && interval.from <= other.to)
      .sort((a, b) => a.offset - b.offset);
    let offset = 0;
    for (const other of others) {
      if (offset + interval.bytes <= other.offset) break;
      offset = Math.max(offset, other.offset + other.bytes);
    }
    interval.offset = offset;
    placed.push(interval);
    end = Math.max(end, offset + interval.bytes);
  }
  return end;
}

/** Lifetimes of buffers, by the times of their accesses. */
class Lifetimes {
  readonly spans = new Map<Buffer, { from: number; to: number }>();

  touch(buffer: Buffer, time: number): void {
    const span = this.spans.get(buffer);
    if (span === undefined) this.spans.set(buffer, { from: time, to: time });
    else {
      span.from = Math.min(span.from, time);
      span.to = Math.max(span.to, time);
    }
  }

  /** Places all buffers of one kind of memory; `elements` is the size needed of each. Returns the total bytes. */
  place(kind: 'arena' | 'scratch', elements: (buffer: Buffer) => number): number {
    const buffers = [...this.spans].filter(([buffer]) => buffer.home.kind === kind);
    const intervals = buffers.map(([buffer, span]) => ({
      ...span,
      bytes: bufferBytes(buffer, elements(buffer)),
      offset: -1,
    }));
    const bytes = firstFit(intervals);
    buffers.forEach(([buffer], i) => {
      buffer.home = { kind, offset: intervals[i]!.offset };
    });
    return bytes;
  }
}

/** Lifetimes by epoch of first and last access; results of steps that run once live to the end. */
export function lifetimesOf({ steps, loops, onceSteps }: Plan): Lifetimes {
  const lifetimes = new Lifetimes();
  const end = steps.at(-1)?.epoch ?? 0;
  const byRoot = new Map<Buffer, { readonly at: number; readonly turns: readonly Loop[] }[]>();
  const touch = (buffer: Buffer, at: number): void => {
    const root = rootOf(buffer);
    lifetimes.touch(root, steps[at]!.epoch);
    if (at < onceSteps) lifetimes.touch(root, end);
    if (loops.length > 0) byRoot.set(root, [...(byRoot.get(root) ?? []), { at, turns: turnsOf(buffer) }]);
  };
  steps.forEach((step, at) => {
    for (const buffer of [...readsOfStep(step), ...writesOfStep(step)]) touch(buffer, at);
  });
  // A predicate is read before the first step of what it decides on.
  for (const { loop, first } of loops)
    if (loop.predicate !== undefined) touch(loop.predicate.view.buffer, first);
  for (const [root, touches] of byRoot) {
    for (const { loop, first, end } of loops) {
      const within = touches.filter(({ at }) => at >= first && at < end);
      const outlives = within.length < touches.length || within.some(({ turns }) => turns.includes(loop));
      if (within.length === 0 || !outlives) continue;
      // Each turn needs what is from outside, and what one turn leaves for the next.
      lifetimes.touch(root, steps[first]!.epoch);
      lifetimes.touch(root, steps[end - 1]!.epoch);
    }
  }
  return lifetimes;
}

/** Lifetimes within a chain, by unit of first and last access. */
export function lifetimesIn(chain: Chain): Lifetimes {
  const lifetimes = new Lifetimes();
  chain.units.forEach((unit, time) => {
    for (const { buffer } of [...touchedReads(unit, chain.rows), ...touchedWrites(unit, chain.rows)])
      lifetimes.touch(buffer, time);
  });
  return lifetimes;
}

/** Places the buffers of the arena, with so many elements each; returns its bytes. */
export const placeArena = (plan: Plan, elements = ({ size }: Buffer): number => size): number =>
  lifetimesOf(plan).place('arena', elements);

/** Places a chain's scratch memory for blocks of `blockRows` rows; returns the bytes per thread. */
export function placeScratch(chain: Chain, blockRows: number): number {
  return lifetimesIn(chain).place('scratch', (buffer) => rowLength(buffer, chain)! * blockRows);
}
