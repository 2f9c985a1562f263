/**
 * @file Operations that are others on parts: lookups of rows that other ranks may have, of which each rank ignores those, and
 * rotations, whose slices go from rank to rank.
 */
import { newValue, type Value } from '../program/ir.js';
import { type DType, hostArrayFrom } from '../program/tensors.js';
import type { Emit } from './reshard.js';

/** The part of such a factor that a rank has. */
interface OwnRange {
  /** The group whose members have the parts. */
  readonly group: { readonly mesh: readonly number[]; readonly axes: readonly number[] };
  /** Elements of a part. */
  readonly size: number;
}

export const scalar = (value: number, dtype: DType): Value =>
  newValue({ shape: [], dtype }, { data: hostArrayFrom(dtype, [value]) });

/** Indices within this rank's part, and whether each is there. Those that are not are those of its first element. */
function ownIndices(indices: Value, { group, size }: OwnRange, emit: Emit) {
  const begin = emit('Multiply', [emit('MemberIndex', [], { ...group }), scalar(size, 'int32')]);
  const shifted = emit('Sub', [indices, begin]);
  const isOwn = emit('LogicalAnd', [
    emit('GreaterEqual', [shifted, scalar(0, 'int32')]),
    emit('Less', [shifted, scalar(size, 'int32')]),
  ]);
  return { isOwn, shifted, inside: emit('Select', [isOwn, shifted, scalar(0, 'int32')]) };
}

/** A condition on leading axes, for elements behind them. */
const forElements = (condition: Value, behind: number, emit: Emit): Value =>
  behind === 0
    ? condition
    : emit('Reshape', [condition], { shape: [...condition.shape, ...new Array<number>(behind).fill(1)] });

/** An operation on a rank's part, from its inputs and attributes on parts. */
type OnPart = (
  inputs: readonly Value[],
  attrs: Readonly<Record<string, any>>,
  range: OwnRange,
  emit: Emit,
) => Value;

/** By operation. */
export const ON_PARTS: Readonly<Record<string, OnPart>> = {
  /** Rows that others have are 0. */
  GatherV2: ([x, indices], attrs, range, emit) => {
    const { isOwn, inside } = ownIndices(indices!, range, emit);
    const rows = emit('GatherV2', [x!, inside], attrs);
    const behind = x!.shape.length - 1 - (attrs.axis as number);
    return emit('Select', [forElements(isOwn, behind, emit), rows, scalar(0, x!.dtype)]);
  },
  /** Rows of segments that others have count as 0. */
  UnsortedSegmentSum: ([x, ids], attrs, range, emit) => {
    const { isOwn, inside } = ownIndices(ids!, range, emit);
    const own = emit('Select', [forElements(isOwn, x!.shape.length - 1, emit), x!, scalar(0, x!.dtype)]);
    return emit('UnsortedSegmentSum', [own, inside], attrs);
  },
  OneHot: ([indices], attrs, range, emit) => {
    const { isOwn, shifted } = ownIndices(indices!, range, emit);
    // Beyond the last class, and so of none.
    const none = scalar(range.size, 'int32');
    return emit('OneHot', [emit('Select', [isOwn, shifted, none])], attrs);
  },
  /** The slice that leaves the part goes to the next member, and the one that comes is that of the member before. */
  Roll: ([x], { axis, by }, { group, size }, emit) => {
    const handOn = (slice: Value): Value => emit('CollectivePermute', [slice], { ...group, by });
    if (size === 1) return handOn(x!);
    const between = (begin: number, end: number): Value =>
      emit('Slice', [x!], {
        begin: x!.shape.map((_, i) => (i === axis ? begin : 0)),
        size: x!.shape.map((all, i) => (i === axis ? end - begin : all)),
      });
    const parts =
      by === 1
        ? [handOn(between(size - 1, size)), between(0, size - 1)]
        : [between(1, size), handOn(between(0, 1))];
    return emit('Concat', parts, { axis });
  },
};
