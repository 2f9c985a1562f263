/** @file C calls of the runtime between ranks. */
import { type Shape, sizeOf } from '../../program/tensors.js';
import { groupOf, membersOf } from '../../rules/collectiveRules.js';
import type { CallUnit } from '../plan/units.js';
import { storageBytes, type View } from '../plan/views.js';
import type { Needs } from './cFunctions.js';

type PointerOf = (view: View) => string;

/** Numbers of a dimension that members' parts are joined along. */
interface Joined {
  readonly outer: number;
  /** Elements of one part behind each other. */
  readonly run: number;
}

/** A dimension of the tensor whose parts they are, by the shape of a part. */
const joinedAlong = (part: Shape, dim: number): Joined => ({
  outer: sizeOf(part.slice(0, dim)),
  run: sizeOf(part.slice(dim)),
});

/** The number of a unit's group in the program's table. */
function groupNumber({ attrs }: CallUnit, { groups }: Needs): number {
  const group = groupOf(attrs);
  const known = groups.findIndex((other) => JSON.stringify(other) === JSON.stringify(group));
  return known < 0 ? groups.push(group) - 1 : known;
}

const bytesOf = ({ buffer, shape }: View): number => sizeOf(shape) * storageBytes(buffer.storage);

const REDUCTIONS: Readonly<Record<string, string>> = { sum: 'LT_SUM', max: 'LT_LARGEST', min: 'LT_LEAST' };

/** The runtime's constant for a unit's reduction. */
function reductionName({ inputs: [x], attrs }: CallUnit): string {
  const name = REDUCTIONS[(attrs.reduction as string | undefined) ?? 'sum']!;
  return x!.buffer.storage === 'float32' ? name : `LT_OF_INTS + ${name}`;
}

export function allReduce(unit: CallUnit, pointer: PointerOf, needs: Needs): string[] {
  const [x, out] = [unit.inputs[0]!, unit.outputs[0]!];
  const parts = [groupNumber(unit, needs), pointer(out), pointer(x), sizeOf(x.shape), reductionName(unit)];
  return [`lt_all_reduce(frame, ${parts.join(', ')});`];
}

export function reduceScatter(
  unit: CallUnit,
  pointer: PointerOf,
  needs: Needs,
  workspace: () => string,
): string[] {
  const [x, out] = [unit.inputs[0]!, unit.outputs[0]!];
  const { outer, run } = joinedAlong(out.shape, unit.attrs.dim as number);
  needs.workspace.add(`${bytesOf(x)}`);
  const parts = [groupNumber(unit, needs), pointer(out), pointer(x), outer, run, reductionName(unit)];
  return [`lt_reduce_scatter(frame, ${parts.join(', ')}, ${workspace()});`];
}

export function allGather(
  unit: CallUnit,
  pointer: PointerOf,
  needs: Needs,
  workspace: () => string,
): string[] {
  const [x, out] = [unit.inputs[0]!, unit.outputs[0]!];
  const { outer, run } = joinedAlong(x.shape, unit.attrs.dim as number);
  if (outer > 1) needs.workspace.add(`${bytesOf(out)}`);
  const bytes = run * storageBytes(x.buffer.storage);
  const parts = [groupNumber(unit, needs), pointer(out), pointer(x), outer, bytes];
  return [`lt_all_gather(frame, ${parts.join(', ')}, ${workspace()});`];
}

export function allToAll(
  unit: CallUnit,
  pointer: PointerOf,
  needs: Needs,
  workspace: () => string,
): string[] {
  const [x, out] = [unit.inputs[0]!, unit.outputs[0]!];
  const { attrs } = unit;
  const [split, joined] = [attrs.from as number, attrs.to as number];
  const block = x.shape.map((size, dim) => (dim === split ? size / membersOf(groupOf(attrs)) : size));
  const width = storageBytes(x.buffer.storage);
  const numbers = [joinedAlong(block, split), joinedAlong(block, joined)].flatMap(({ outer, run }) => [
    outer,
    run * width,
  ]);
  needs.workspace.add(`${2 * bytesOf(x)}`);
  const parts = [groupNumber(unit, needs), pointer(out), pointer(x), '&exchange', workspace()];
  return [
    `const lt_exchange exchange = {${numbers.join(', ')}};`,
    `lt_all_to_all(frame, ${parts.join(', ')});`,
  ];
}

export function ownPart(unit: CallUnit, pointer: PointerOf, needs: Needs): string[] {
  const [x, out] = [unit.inputs[0]!, unit.outputs[0]!];
  const { outer, run } = joinedAlong(out.shape, unit.attrs.dim as number);
  const bytes = run * storageBytes(x.buffer.storage);
  const parts = [groupNumber(unit, needs), pointer(out), pointer(x), outer, bytes];
  return [`lt_own_part(frame, ${parts.join(', ')});`];
}

export const memberIndex = (unit: CallUnit, pointer: PointerOf, needs: Needs): string[] => [
  `lt_member_index(frame, ${groupNumber(unit, needs)}, ${pointer(unit.outputs[0]!)});`,
];
