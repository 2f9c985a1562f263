/** @file C calls of the runtime between ranks. */
import { sizeOf } from '../../program/tensors.js';
import { groupOf } from '../../rules/collectiveRules.js';
import { blockBytes, memberParts } from '../plan/collectives.js';
import type { CallUnit } from '../plan/units.js';
import { storageBytes, type View } from '../plan/views.js';
import type { Needs } from './cFunctions.js';

type PointerOf = (view: View) => string;
type Place = () => string;

/** The number of a unit's group in the program's table. */
function groupNumber({ attrs }: CallUnit, { groups }: Needs): number {
  const group = groupOf(attrs);
  const known = groups.findIndex((other) => JSON.stringify(other) === JSON.stringify(group));
  return known < 0 ? groups.push(group) - 1 : known;
}

/** The leading arguments of each function of the runtime. */
const target = (unit: CallUnit, pointer: PointerOf, needs: Needs): (string | number)[] => [
  groupNumber(unit, needs),
  ...[...unit.outputs, ...unit.inputs].map((view) => pointer(view)),
];

const REDUCTIONS: Readonly<Record<string, string>> = { sum: 'LT_SUM', max: 'LT_LARGEST', min: 'LT_LEAST' };

/** The runtime's constant for a unit's reduction. */
function reductionName({ inputs: [x], attrs }: CallUnit): string {
  const name = REDUCTIONS[(attrs.reduction as string | undefined) ?? 'sum']!;
  return x!.buffer.storage === 'float32' ? name : `LT_OF_INTS + ${name}`;
}

/** Bytes of an element. */
const widthOf = ({ inputs: [x] }: CallUnit): number => storageBytes(x!.buffer.storage);

/** The workspace of a call, which has its blocks. */
function workspaceOf(unit: CallUnit, needs: Needs, place: Place): string {
  const bytes = blockBytes(unit);
  if (bytes === 0) return 'NULL';
  needs.workspace.add(`${bytes}`);
  return place();
}

export function allReduce(unit: CallUnit, pointer: PointerOf, needs: Needs): string[] {
  const parts = [...target(unit, pointer, needs), sizeOf(unit.inputs[0]!.shape), reductionName(unit)];
  return [`lt_all_reduce(frame, ${parts.join(', ')});`];
}

export function reduceScatter(unit: CallUnit, pointer: PointerOf, needs: Needs, place: Place): string[] {
  const { outer, run } = memberParts(unit).from;
  const parts = [...target(unit, pointer, needs), outer, run, reductionName(unit)];
  return [`lt_reduce_scatter(frame, ${parts.join(', ')}, ${workspaceOf(unit, needs, place)});`];
}

export function allGather(unit: CallUnit, pointer: PointerOf, needs: Needs, place: Place): string[] {
  const { outer, run } = memberParts(unit).to;
  const parts = [...target(unit, pointer, needs), outer, run * widthOf(unit)];
  return [`lt_all_gather(frame, ${parts.join(', ')}, ${workspaceOf(unit, needs, place)});`];
}

export function allToAll(unit: CallUnit, pointer: PointerOf, needs: Needs, place: Place): string[] {
  const { from, to } = memberParts(unit);
  const numbers = [from, to].flatMap(({ outer, run }) => [outer, run * widthOf(unit)]);
  const parts = [...target(unit, pointer, needs), '&exchange', workspaceOf(unit, needs, place)];
  return [
    `const lt_exchange exchange = {${numbers.join(', ')}};`,
    `lt_all_to_all(frame, ${parts.join(', ')});`,
  ];
}

export function collectivePermute(unit: CallUnit, pointer: PointerOf, needs: Needs): string[] {
  const bytes = sizeOf(unit.inputs[0]!.shape) * widthOf(unit);
  const parts = [...target(unit, pointer, needs), bytes, unit.attrs.by as number];
  return [`lt_collective_permute(frame, ${parts.join(', ')});`];
}

export function ownPart(unit: CallUnit, pointer: PointerOf, needs: Needs): string[] {
  const { outer, run } = memberParts(unit).from;
  return [`lt_own_part(frame, ${[...target(unit, pointer, needs), outer, run * widthOf(unit)].join(', ')});`];
}

export const memberIndex = (unit: CallUnit, pointer: PointerOf, needs: Needs): string[] => [
  `lt_member_index(frame, ${target(unit, pointer, needs).join(', ')});`,
];
