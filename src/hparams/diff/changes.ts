/** @file Diffs as data: changes, paths, the configs that values name, and filters. */
import type { ClassInfo } from '../fields/fields.js';
import { mapContainers, partsOf } from '../nodes/containers.js';
import type { NodeKind } from '../nodes/node.js';
import type { Tag } from '../types.js';
import { isSameStep, type PathLink, parsePath, type Segment, segmentsOf } from '../walking/paths.js';

/**
 * A path as a chain of steps, so that long paths share their beginnings: `segmentsOf(path)` gives the steps and
 * `formatLink(path)` the text. Undefined is the root. Every path of a diff is one of the OLD structure, as it was before
 * any change, except where `newPath` is said; within one diff, all paths to and through a config share its one path.
 */
export type Path = PathLink | undefined;

/** In a value of a diff: the config at `path` of the old structure, be it moved, shared or gone. */
export class OldPart {
  constructor(readonly path: Path) {}
}

/** In a value of a diff: the config `diff.added[index]`; one that several values name is shared. */
export class AddedPart {
  constructor(readonly index: number) {}
}

/** A value: leaves unchanged, arrays and records of values, and `OldPart` or `AddedPart` for configs. */
export type DiffValue = unknown;

/** A config's field that has a tag which its class does not declare, or lacks one that it declares. */
export interface TagState {
  readonly field: string;
  readonly tag: Tag;
  readonly present: boolean;
}

/** A config that only one of the two structures has. */
export interface PartConfig {
  /** Its path: in the new structure for `added`, in the old one for `removed`. */
  readonly path: Path;
  readonly info: ClassInfo;
  readonly kind: NodeKind;
  /** Explicit values by field. */
  readonly values: Readonly<Record<string, DiffValue>>;
  readonly tags: readonly TagState[];
}

/** A field without an explicit value, or a new key of a record, gets one. */
interface SetChange {
  readonly kind: 'set';
  /** Ends in a field, or in a record's key. */
  readonly path: Path;
  readonly value: DiffValue;
}

/** A value in the place of another. */
interface ModifyChange {
  readonly kind: 'modify';
  /** Ends in a field, an index of the old array, or a record's key; undefined where the root is replaced. */
  readonly path: Path;
  readonly old: DiffValue;
  readonly value: DiffValue;
}

/** A field goes back to its default, or a record loses a key. */
interface DeleteChange {
  readonly kind: 'delete';
  readonly path: Path;
  readonly old: DiffValue;
}

/**
 * Indices of array items refer to the old array. The new array has, for each old index i in turn: the items of
 * `insert` and `move` changes before i, in the order of the changes; then the old item i, unless it was removed or
 * moved. Items with the index 'end' follow the last one.
 */
export interface InsertChange {
  readonly kind: 'insert';
  /** The path of the array. */
  readonly path: Path;
  readonly before: number | 'end';
  readonly value: DiffValue;
  /** How many items the old array had. */
  readonly length: number;
}

export interface RemoveChange {
  readonly kind: 'remove';
  /** Ends in the index of the item. */
  readonly path: Path;
  readonly old: DiffValue;
  readonly length: number;
}

export interface MoveChange {
  readonly kind: 'move';
  /** Ends in the index of the item. */
  readonly path: Path;
  readonly before: number | 'end';
  /** The moved value, for display. */
  readonly old: DiffValue;
  readonly length: number;
}

/** The config at `path` becomes one of another class. Fields that the new class lacks have changes of their own. */
export interface ClassChange {
  readonly kind: 'class';
  /** The path of the config. */
  readonly path: Path;
  readonly old: ClassInfo;
  readonly value: ClassInfo;
}

/** Another kind, such as a partial for a config. */
export interface KindChange {
  readonly kind: 'kind';
  /** The path of the config. */
  readonly path: Path;
  readonly old: NodeKind;
  readonly value: NodeKind;
}

/** A tag is put on a field, or taken from it. */
export interface TagChange {
  readonly kind: 'addTag' | 'removeTag';
  /** Ends in the field. */
  readonly path: Path;
  readonly tag: Tag;
}

export type Change =
  | SetChange
  | ModifyChange
  | DeleteChange
  | InsertChange
  | RemoveChange
  | MoveChange
  | ClassChange
  | KindChange
  | TagChange;

/** Whether a change puts a value somewhere. */
export function bringsValue(change: Change): change is SetChange | ModifyChange | InsertChange {
  return change.kind === 'set' || change.kind === 'modify' || change.kind === 'insert';
}

/** An old config that a path of the diff leads to or through. */
export interface DiffPlace {
  readonly path: Path;
  readonly info: ClassInfo;
  readonly kind: NodeKind;
  /** The path to it in the new structure: absent for configs that are gone, and in diffs that were filtered. */
  readonly newPath?: { readonly path: Path };
}

/**
 * Changes that turn the old structure into the new one. They apply at once: every path, index and `OldPart` is
 * resolved in the old structure before the first change. Their order is that of the old configs (outer before inner,
 * fields as declared); for one config: class, kind, then per field its tags and its values.
 */
export interface Diff {
  readonly changes: readonly Change[];
  /** Configs of the new structure that the old one lacks, in the order in which values name them. */
  readonly added: readonly PartConfig[];
  /** Configs of the old structure that the new one lacks; values of the diff name them by their paths. */
  readonly removed: readonly PartConfig[];
  /** The configs that paths, old and new, lead to or through, each once. */
  readonly places: readonly DiffPlace[];
}

/** The configs named in a value, in order. */
export function collectParts(value: DiffValue, into: (OldPart | AddedPart)[] = []): (OldPart | AddedPart)[] {
  if (value instanceof OldPart || value instanceof AddedPart) into.push(value);
  else for (const [, part] of partsOf(value) ?? []) collectParts(part, into);
  return into;
}

/** A value with each config in it replaced. */
function mapParts(value: DiffValue, swap: (part: OldPart | AddedPart) => DiffValue): DiffValue {
  return mapContainers(value, (leaf) =>
    leaf instanceof OldPart || leaf instanceof AddedPart ? swap(leaf) : leaf,
  );
}

/** Splits a path into that of its last config and the rest: a field, and the steps within it. */
export function splitPath(path: Path): { config: Path; field: string | undefined; inner: Segment[] } {
  const inner: Segment[] = [];
  for (let at = path; at !== undefined; at = at.parent) {
    if (typeof at.segment === 'string')
      return { config: at.parent, field: at.segment, inner: inner.reverse() };
    inner.push(at.segment);
  }
  return { config: undefined, field: undefined, inner: inner.reverse() };
}

/** `diff` without the changes selected by `ignore`; unused added configs are dropped, too. */
export function ignoringChanges(diff: Diff, ignore: (change: Change) => boolean): Diff {
  const changes = diff.changes.filter((change) => !ignore(change));
  if (changes.length === diff.changes.length) return diff;
  // Final places depend on all changes.
  const places = diff.places.map(({ path, info, kind }) => ({ path, info, kind }));
  return withAddedOf({ ...diff, changes, places });
}

/** `diff` without the changes at and below `paths`, given as text or steps of the old structure. */
export function ignoringPaths(diff: Diff, paths: readonly (string | readonly Segment[])[]): Diff {
  const ignored = paths.map((path) => (typeof path === 'string' ? parsePath(path) : path));
  return ignoringChanges(diff, ({ path }) => {
    const steps = segmentsOf(path);
    return ignored.some((outer) => outer.every((step, i) => i < steps.length && isSameStep(step, steps[i]!)));
  });
}

/** `diff` with the added configs that its changes need, counted again. */
function withAddedOf(diff: Diff): Diff {
  const numbers = new Map<number, number>();
  const need = (value: unknown): void => {
    for (const part of collectParts(value)) {
      if (part instanceof AddedPart && !numbers.has(part.index)) numbers.set(part.index, numbers.size);
    }
  };
  for (const change of diff.changes) if (bringsValue(change)) need(change.value);
  // The loop also visits numbers added on the way.
  for (const index of numbers.keys()) need(diff.added[index]!.values);
  const renumbered = <T>(value: T): T =>
    mapParts(value, (part) =>
      part instanceof AddedPart ? new AddedPart(numbers.get(part.index)!) : part,
    ) as T;
  return {
    ...diff,
    changes: diff.changes.map((change) =>
      bringsValue(change) ? { ...change, value: renumbered(change.value) } : change,
    ),
    added: [...numbers.keys()].map((index) => {
      const part = diff.added[index]!;
      return { ...part, values: renumbered(part.values) };
    }),
  };
}
