/** @file Operations between the ranks of a mesh, which programs of one rank have in them. */

import type { Lowering } from '../onnx/builder.js';
import { type Attrs, ints } from '../program/ir.js';
import { CompilerError, type Shape } from '../program/tensors.js';
import type { CallForm } from './deviceForm.js';
import { elementwise, type Reduction } from './factors.js';
import {
  expects,
  expectsDtypes,
  isWithin,
  NUMBERS,
  type OperationTable,
  type PlainOperation,
  spec,
} from './operation.js';

const REDUCTIONS: readonly unknown[] = ['sum', 'max', 'min'] satisfies Reduction[];

/** Ranks that take part together: those whose places in the mesh differ along `axes` alone. */
export interface Group {
  /** Devices along each axis; ranks are numbered in row-major order. */
  readonly mesh: readonly number[];
  /** Numbers of axes; members are numbered in row-major order of these. */
  readonly axes: readonly number[];
}

/** The group that a collective names. */
export const groupOf = (attrs: Attrs): Group => ({ mesh: ints(attrs.mesh), axes: ints(attrs.axes) });

/** Members of a group. */
export const membersOf = ({ mesh, axes }: Group): number =>
  axes.reduce((product, axis) => product * mesh[axis]!, 1);

/** Place of `rank` along each axis of a mesh. */
export function placeInMesh(mesh: readonly number[], rank: number): number[] {
  const place = new Array<number>(mesh.length);
  let rest = rank;
  for (let i = mesh.length - 1; i >= 0; i--) {
    place[i] = rest % mesh[i]!;
    rest = Math.floor(rest / mesh[i]!);
  }
  return place;
}

/** Number of `rank` among the members of its group. */
export function memberOf({ mesh, axes }: Group, rank: number): number {
  const place = placeInMesh(mesh, rank);
  return axes.reduce((number, axis) => number * mesh[axis]! + place[axis]!, 0);
}

/** The ranks of the group that `rank` belongs to, by their numbers in it. */
export function ranksOf(group: Group, rank: number): number[] {
  const { mesh, axes } = group;
  const place = placeInMesh(mesh, rank);
  const sizes = axes.map((axis) => mesh[axis]!);
  return Array.from({ length: membersOf(group) }, (_, member) => {
    const other = [...place];
    for (const [i, at] of placeInMesh(sizes, member).entries()) other[axes[i]!] = at;
    return other.reduce((number, at, axis) => number * mesh[axis]! + at, 0);
  });
}

const isGroup = (mesh: Attrs[string] | undefined, axes: Attrs[string] | undefined): boolean =>
  Array.isArray(mesh) &&
  Array.isArray(axes) &&
  mesh.every((size) => isWithin(size, 1)) &&
  axes.every((axis) => isWithin(axis, 0, mesh.length - 1)) &&
  new Set(axes).size === axes.length;

const expectsGroup = ({ mesh, axes }: Attrs): void =>
  expects(isGroup(mesh, axes), 'sizes of a mesh and different axes of it', `${mesh} and ${axes}`);

/** Engines that cannot call other ranks run the pieces between collectives. */
const inPieces: Lowering = ({ op }) => {
  throw new CompilerError(
    `${op} is no operation of ONNX: programs of ranks run in pieces between collectives.`,
  );
};

/** Common fields of all forms. */
const common = { kind: 'call', contiguous: [0], part: 'collective' } as const;

/** An operation that gives a tensor of another size along `dim`: each rank's part of it, or all parts. */
const resizing = (
  name: string,
  shapeOf: (shape: Shape, attrs: Attrs, ways: number) => Shape,
  form: Pick<CallForm, 'usesWorkspace' | 'asksRanks'> = { usesWorkspace: true, asksRanks: true },
): PlainOperation => ({
  inputs: ['x'],
  attrs: (raw) => raw,
  infer: ([x], attrs) => {
    expectsGroup(attrs);
    return [spec(shapeOf(x!.shape, attrs, membersOf(groupOf(attrs))), x!.dtype)];
  },
  onnx: inPieces,
  device: { ...common, ...form, name },
});

/** The shape with the size of one dimension replaced. */
function withSize(shape: Shape, dim: unknown, resize: (size: number) => number): number[] {
  expects(isWithin(dim, 0, shape.length - 1), `a dimension below ${shape.length}`, dim);
  const sizes = [...shape];
  sizes[dim] = resize(shape[dim]!);
  return sizes;
}

/** A size over a number of members. */
const part =
  (ways: number) =>
  (size: number): number => {
    expects(size % ways === 0, `a size that ${ways} ranks divide`, size);
    return size / ways;
  };

const expectsReduction = ({ reduction }: Attrs): void =>
  expects(REDUCTIONS.includes(reduction), 'sum, max or min', reduction);

/** The name of the operation that says how a tensor is split. Partitions of programs leave none. */
export const CONSTRAINT = 'ShardingConstraint';

/** Numbers of the axes of a mesh that each dimension is split over. */
export function constrainedSharding({ axes, counts }: Attrs): number[][] {
  const rest = [...ints(axes)];
  return ints(counts).map((count) => rest.splice(0, count));
}

export const collectiveRules: OperationTable = {
  /** x, split over axes of the mesh: those of each dimension in one list, as many of each as `counts` says. */
  [CONSTRAINT]: {
    inputs: ['x'],
    attrs: (raw) => raw,
    infer: ([x], { counts }) => {
      expects(ints(counts).length === x!.shape.length, `axes of ${x!.shape.length} dimensions`, counts);
      return [spec(x!.shape, x!.dtype)];
    },
    factors: elementwise,
    isView: true,
    onnx: inPieces,
  },
  /** The reduction over the members of a group, for all of them. */
  AllReduce: {
    inputs: ['x'],
    attrs: (raw) => raw,
    infer: ([x], attrs) => {
      expectsGroup(attrs);
      expectsReduction(attrs);
      expectsDtypes([x!], NUMBERS);
      return [spec(x!.shape, x!.dtype)];
    },
    onnx: inPieces,
    device: { ...common, name: 'allReduce', asksRanks: true },
  },
  /** The parts of all members along `dim`, in their order. */
  AllGather: resizing('allGather', (shape, { dim }, ways) => withSize(shape, dim, (size) => size * ways)),
  /** Each member's part along `dim` of the sum over them. */
  ReduceScatter: resizing('reduceScatter', (shape, { dim }, ways) => withSize(shape, dim, part(ways))),
  /** Parts along `from` of what each member has, exchanged and joined along `to`: member i gives its j-th part to member j. */
  AllToAll: resizing('allToAll', (shape, { from, to }, ways) => {
    expects(from !== to, 'two dimensions', `${from} and ${to}`);
    return withSize(withSize(shape, from, part(ways)), to, (size) => size * ways);
  }),
  /** What the member before has, the last one before the first; `by` -1: what the next one has. */
  CollectivePermute: {
    inputs: ['x'],
    attrs: (raw) => raw,
    infer: ([x], attrs) => {
      expectsGroup(attrs);
      expects(attrs.by === 1 || attrs.by === -1, '1 or -1 members', attrs.by);
      return [spec(x!.shape, x!.dtype)];
    },
    onnx: inPieces,
    device: { ...common, name: 'collectivePermute', asksRanks: true },
  },
  /** The member's own part along `dim` of what all members have. No rank is asked. */
  OwnPart: resizing('ownPart', (shape, { dim }, ways) => withSize(shape, dim, part(ways)), {}),
  /** int32 []: the member's number in its group. */
  MemberIndex: {
    inputs: [],
    infer: (_, attrs) => {
      expectsGroup(attrs);
      return [spec([], 'int32')];
    },
    onnx: inPieces,
    device: { ...common, name: 'memberIndex', contiguous: [] },
  },
};

/** Whether an operation waits for other ranks. */
export function asksRanks(op: string): boolean {
  const form = collectiveRules[op]?.device;
  return form?.kind === 'call' && form.asksRanks === true;
}

/** Whether an operation's result depends on which rank runs it. */
export const isCollective = (op: string): boolean => op in collectiveRules && op !== CONSTRAINT;
