/** @file Collectives among the calls of a plan: their groups, and the bytes that they exchange and lay out. */
import { type Shape, sizeOf } from '../../program/tensors.js';
import { type Group, groupOf, membersOf } from '../../rules/collectiveRules.js';
import type { CallUnit } from './units.js';
import { storageBytes, type View } from './views.js';

const bytesOf = ({ buffer, shape }: View): number => sizeOf(shape) * storageBytes(buffer.storage);

/** A call that asks other ranks. */
export interface Collective {
  readonly group: Group;
  readonly members: number;
  /** Bytes of the tensor that the members make, or exchange. */
  readonly bytes: number;
}

/** The collective that a call is; undefined for one that asks no rank. */
export function collectiveOf({ form, inputs, outputs, attrs }: CallUnit): Collective | undefined {
  if (form.asksRanks !== true) return undefined;
  const group = groupOf(attrs);
  const bytes = Math.max(...[...inputs, ...outputs].map(bytesOf));
  return { group, members: membersOf(group), bytes };
}

/** Members' parts as they lie in a tensor: `outer` times all members' `run` elements. */
export interface MemberParts {
  readonly outer: number;
  readonly run: number;
}

/** MemberParts of this shape along a dimension. */
const partsAlong = (part: Shape, dim: number): MemberParts => ({
  outer: sizeOf(part.slice(0, dim)),
  run: sizeOf(part.slice(dim)),
});

/** The parts that a collective, or `OwnPart`, reads, and those that it writes; along which dimension, its attributes say. */
export function memberParts({
  op,
  inputs: [x],
  outputs: [out],
  attrs,
}: CallUnit): Record<'from' | 'to', MemberParts> {
  const { dim, from, to } = attrs as Record<'dim' | 'from' | 'to', number>;
  if (op === 'AllToAll') {
    const ways = membersOf(groupOf(attrs));
    const part = x!.shape.map((size, i) => (i === from ? size / ways : size));
    return { from: partsAlong(part, from), to: partsAlong(part, to) };
  }
  const parts = partsAlong(op === 'AllGather' ? x!.shape : out!.shape, dim);
  return { from: parts, to: parts };
}

/** Bytes of the workspace in which a collective lays out its blocks. */
export function blockBytes(unit: CallUnit): number {
  if (unit.form.asksRanks !== true || unit.op === 'AllReduce' || unit.op === 'CollectivePermute') return 0;
  const { bytes } = collectiveOf(unit)!;
  const { from, to } = memberParts(unit);
  switch (unit.op) {
    // The transport adds up in place.
    case 'ReduceScatter':
      return bytes;
    case 'AllGather':
      return to.outer > 1 ? bytes : 0;
    default:
      return bytes * (Number(from.outer > 1) + Number(to.outer > 1));
  }
}
