/** @file Schedule of a program's operations: segments between the begins and ends of loops, one after the other. */
import { fuse } from './fusion.js';
import { orderForFusion } from './fusionOrder.js';
import { isSteady, type Segment, segmentsOf } from './loops.js';
import { splitOnce } from './once.js';
import { type PlacedOp, writeCounts } from './placedOps.js';
import { joinSchedules, type Packing, type Schedule, type Stage, schedule } from './stages.js';
import type { Unit } from './units.js';
import type { Buffer } from './views.js';

/** A segment's units: those that run once their inputs have changed, and those of every run. */
interface FusedSegment extends Pick<Segment, 'after' | 'loops'> {
  readonly early: readonly Unit[];
  readonly late: readonly Unit[];
  /** Whether a buffer's contents persist between runs. */
  readonly isKept: (buffer: Buffer) => boolean;
}

function fused(
  { after, loops, ops }: Segment,
  frozen: ReadonlySet<number>,
  writes: ReadonlyMap<Buffer, number>,
): FusedSegment {
  if (loops.length > 0)
    return { after, loops, early: [], late: fuse(orderForFusion(ops)), isKept: () => false };
  const { once, rest, isKept } = splitOnce(orderForFusion(ops), frozen, writes);
  return { after, loops, early: fuse(once), late: fuse(rest), isKept };
}

/** The segments of placed operations, fused; `frozen` inputs, by number, keep their contents between runs. */
export function fuseSegments(ops: readonly PlacedOp[], frozen: ReadonlySet<number>): FusedSegment[] {
  const writes = writeCounts(ops);
  return segmentsOf(ops).map((segment) => fused(segment, frozen, writes));
}

/** The units of segments. */
export const unitsOfSegments = (segments: readonly FusedSegment[]): Unit[] =>
  segments.flatMap(({ early, late }) => [...early, ...late]);

/** The schedule of segments. What all turns of a loop multiply by is packed before the loop. */
export function scheduleSegments(segments: readonly FusedSegment[]): Schedule {
  const [once, rest, packings]: [Stage[], Stage[], Packing[]] = [[], [], []];
  const units = segments.map(({ loops, late }) => [loops, late] as const);
  for (const { after, loops, early, late, isKept } of segments) {
    if (after !== undefined)
      rest.push({ kind: after.op === 'Begin' ? 'begin' : 'end', units: [], loop: after.loop });
    const loop = loops.at(-1);
    const {
      stages,
      onceStages,
      packings: own,
    } = loop === undefined
      ? joinSchedules(schedule(early), schedule(late, isKept))
      : schedule(late, isSteady(loop, units));
    packings.push(...own);
    const first = stages.slice(0, onceStages);
    if (loop === undefined) once.push(...first);
    else {
      const begin = rest.findIndex((stage) => stage.kind === 'begin' && stage.loop === loop);
      rest.splice(begin, 0, ...first);
    }
    rest.push(...stages.slice(onceStages));
  }
  const all = [...once, ...rest];
  return { stages: all, packings, onceStages: once.length, laterStages: all.length };
}
