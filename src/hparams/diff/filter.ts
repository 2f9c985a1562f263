/** @file A diff without some of its changes. */
import { parsePath, type Segment } from '../walking/paths.js';
import {
  AddedPart,
  type Change,
  collectParts,
  type Diff,
  type DiffPlace,
  mapChange,
  mapPart,
  type OldPart,
  type Path,
  PathTable,
} from './types.js';

/** `diff` without the changes that `ignore` says; added configs that nothing uses any more go as well. */
export function ignoringChanges(diff: Diff, ignore: (change: Change) => boolean): Diff {
  const kept = diff.changes.filter((change) => !ignore(change));
  if (kept.length === diff.changes.length) return diff;
  const left = new Set(kept);
  // Where things stand afterwards is as it was said only if what was taken away put nothing anywhere.
  const isPlain = !diff.changes.some((change) => !left.has(change) && changesStructure(change));
  const places = diff.places.map((place): DiffPlace => {
    const { path, info, kind } = place;
    return isPlain ? place : { path, info, kind };
  });
  return prune({ ...diff, changes: kept, places });
}

/** `diff` without the changes at and below `paths`, given as text or steps of the old structure. */
export function ignoringPaths(diff: Diff, paths: readonly (string | readonly Segment[])[]): Diff {
  const table = new PathTable();
  const ignored = new Set<Path>();
  for (const path of paths) {
    let at: Path;
    for (const segment of typeof path === 'string' ? parsePath(path) : path) at = table.step(at, segment);
    ignored.add(at);
  }
  const known = new Map<Path, boolean>();
  const isIgnored = (path: Path): boolean => {
    const open: Path[] = [];
    let at = table.intern(path);
    while (at !== undefined && !known.has(at) && !ignored.has(at)) {
      open.push(at);
      at = at.parent;
    }
    const answer = ignored.has(at) || known.get(at) === true;
    for (const each of open) known.set(each, answer);
    return answer;
  };
  return ignoringChanges(diff, (change) => isIgnored(change.path));
}

/** Whether a change puts configs or items of lists somewhere, or takes them away. */
export function changesStructure(change: Change): boolean {
  switch (change.kind) {
    case 'set':
      return collectParts(change.value).length > 0;
    case 'delete':
      return collectParts(change.old).length > 0;
    case 'modify':
      return collectParts(change.old).length + collectParts(change.value).length > 0;
    default:
      return change.kind === 'insert' || change.kind === 'remove' || change.kind === 'move';
  }
}

/** `diff` with the added configs that its changes need, counted anew. */
export function prune(diff: Diff): Diff {
  const numbers = new Map<number, number>();
  const need = (value: unknown): void => {
    for (const part of collectParts(value)) {
      if (part instanceof AddedPart && !numbers.has(part.index)) numbers.set(part.index, numbers.size);
    }
  };
  for (const change of diff.changes) {
    if (change.kind === 'set' || change.kind === 'modify' || change.kind === 'insert') need(change.value);
  }
  // What this adds is looked through as well.
  for (const index of numbers.keys()) need(diff.added[index]!.values);
  const swap = (part: OldPart | AddedPart): OldPart | AddedPart =>
    part instanceof AddedPart ? new AddedPart(numbers.get(part.index)!) : part;
  return {
    ...diff,
    changes: diff.changes.map((change) => mapChange(change, swap)),
    added: [...numbers.keys()].map((index) => mapPart(diff.added[index]!, swap)),
  };
}
