/**
 * @file Storage of buffers: scratch memory for values local to a chain, fewer bytes for values that are only read as
 * rounded operands of products.
 */

import type { Graph, Value } from '../../program/ir.js';
import { operandStorage, precisionOf } from '../../program/precision.js';
import type { NarrowFloat, NarrowType } from '../../program/tensors.js';
import { touchedReads, touchedWrites } from './chainRows.js';
import { formOf } from './forms.js';
import type { Chain, Stage } from './stages.js';
import { type LoopUnit, readsOf, type Unit, writesOf } from './units.js';
import { type Buffer, holdersOf, rootOf } from './views.js';

/** The stages that access each buffer. */
function usersOf(stages: readonly Stage[]): Map<Buffer, Set<Stage>> {
  const users = new Map<Buffer, Set<Stage>>();
  for (const stage of stages) {
    const packed = stage.kind === 'pack' ? stage.packings.map(({ unit }) => unit.b.buffer) : [];
    for (const buffer of [
      ...packed,
      ...stage.units.flatMap((unit) => [...readsOf(unit), ...writesOf(unit)]),
    ]) {
      const set = users.get(buffer) ?? new Set();
      users.set(buffer, set.add(stage));
    }
  }
  return users;
}

const lengths = new WeakMap<Chain, Map<Buffer, number | null>>();

/**
 * Elements of a buffer per row of a finished chain, if every unit accesses it with this row stride; else null. Computed
 * for all buffers of a chain at once.
 */
export function rowLength(buffer: Buffer, chain: Chain): number | null {
  let known = lengths.get(chain);
  if (known === undefined) {
    known = new Map();
    for (const unit of chain.units) {
      for (const touch of [...touchedReads(unit, chain.rows), ...touchedWrites(unit, chain.rows)]) {
        const before = known.get(touch.buffer);
        known.set(touch.buffer, before === undefined || before === touch.stride ? touch.stride : null);
      }
    }
    lengths.set(chain, known);
  }
  return known.get(buffer) ?? null;
}

/** Moves buffers that only one chain uses to scratch memory. */
export function contract(stages: readonly Stage[]): void {
  const users = usersOf(stages);
  for (const stage of stages) {
    if (stage.kind !== 'chain') continue;
    for (const buffer of new Set(stage.units.flatMap(writesOf))) {
      const isLocal = buffer.home.kind === 'arena' && !buffer.pinned && users.get(buffer)!.size === 1;
      if (isLocal && rowLength(buffer, stage) !== null) buffer.home = { kind: 'scratch', offset: -1 };
    }
  }
}

/** Whether a loop reads of a buffer's elements only whether they are positive, as the gradient of ReLU does. */
const readsSigns = ({ nodes }: LoopUnit, buffer: Buffer): boolean =>
  nodes.every(
    ({ op, attrs, reads }) =>
      (op === 'Step' && attrs.alpha === 0) ||
      reads.every((read) => typeof read === 'number' || read.buffer !== buffer),
  );

/**
 * The storage to whose values a unit that reads `buffer` rounds it in any case; 'any' where rounding makes no difference,
 * undefined where it does.
 */
function roundsTo(unit: Unit, buffer: Buffer): NarrowFloat | 'any' | undefined {
  if (unit.kind === 'loop') return readsSigns(unit, buffer) ? 'any' : undefined;
  if (unit.kind === 'product') return unit.sum === buffer ? undefined : operandStorage(unit.precision);
  if (unit.kind !== 'call' || unit.form.rounds === undefined) return undefined;
  // Attention leaves its sums and mask as they are.
  const isKept = unit.inputs.slice(unit.form.rounds.operands).some((view) => view.buffer === buffer);
  return isKept ? undefined : operandStorage(precisionOf(unit.attrs));
}

/** Whether a unit can write `buffer` in the storage of rounded operands. */
const canRound = (unit: Unit, buffer: Buffer): boolean =>
  unit.kind === 'product' ||
  (unit.kind === 'loop' &&
    (unit as LoopUnit).nodes.every(({ role, write }) => write.buffer !== buffer || role === 'map')) ||
  (unit.kind === 'call' &&
    unit.outputs.slice(0, unit.form.rounds?.results ?? 0).some((view) => view.buffer === buffer));

/** A buffer's memory, with all slices of it that units access. */
interface Memory {
  readonly parts: Set<Buffer>;
  /** The storages that its readers round to. */
  readonly storages: Set<NarrowFloat | undefined>;
  /** Whether all that writes to it can round. */
  isRounded: boolean;
}

/** The memory that units access, by root. */
function memoryOf(units: readonly Unit[]): Map<Buffer, Memory> {
  const memory = new Map<Buffer, Memory>();
  const at = (buffer: Buffer): Memory => {
    const root = rootOf(buffer);
    const known = memory.get(root) ?? { parts: new Set(), storages: new Set(), isRounded: true };
    for (const part of holdersOf(buffer)) known.parts.add(part);
    memory.set(root, known);
    return known;
  };
  for (const unit of units) {
    for (const buffer of readsOf(unit)) {
      const { storages } = at(buffer);
      const storage = roundsTo(unit, buffer);
      if (storage !== 'any') storages.add(storage);
    }
    for (const buffer of writesOf(unit)) at(buffer).isRounded &&= canRound(unit, buffer);
  }
  return memory;
}

/**
 * Stores what every reader rounds alike in the storage that it is rounded to: the same values in less memory. The stack of a
 * loop's turns is stored as its slices are.
 */
export function roundStorage(stages: readonly Stage[]): void {
  const units = stages.flatMap((stage): readonly Unit[] => stage.units);
  for (const [root, { parts, storages, isRounded }] of memoryOf(units)) {
    const isOurs = root.home.kind === 'arena' || root.home.kind === 'scratch';
    const [storage, ...others] = storages;
    if (!isOurs || root.storage !== 'float32' || !isRounded) continue;
    if (storage !== undefined && others.length === 0) for (const part of parts) part.storage = storage;
  }
}

/** Keeps values in registers that only the loop that makes them reads. */
export function keepInRegisters(units: readonly Unit[]): void {
  const users = new Map<Buffer, Set<Unit>>();
  for (const unit of units)
    for (const buffer of [...readsOf(unit), ...writesOf(unit)])
      users.set(buffer, (users.get(buffer) ?? new Set()).add(unit));
  for (const unit of units) {
    if (unit.kind !== 'loop') continue;
    for (const { write, role } of unit.nodes) {
      const { buffer } = write;
      const isLocal = buffer.home.kind === 'arena' && !buffer.pinned && users.get(buffer)!.size === 1;
      if (isLocal && (role === 'map' || role === 'row')) buffer.home = { kind: 'register' };
    }
  }
}

/** Whether an operation's result may share the first operand's memory. */
function isInPlace(op: string): boolean {
  const form = formOf(op);
  return form?.kind === 'call' && form.isInPlace === true;
}

/** Storage of values: of these inputs, and of the results of changing them in place. */
export function storagesOf({ nodes }: Graph, inputs: ReadonlyMap<Value, NarrowType>): Map<Value, NarrowType> {
  const storages = new Map(inputs);
  for (const { op, inputs, outputs } of nodes) {
    const storage = storages.get(inputs[0]!);
    if (storage !== undefined && isInPlace(op)) storages.set(outputs[0]!, storage);
  }
  return storages;
}
