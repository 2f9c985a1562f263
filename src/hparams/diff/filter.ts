/** @file Diffs without some of their changes. */
import { isSameStep, parsePath, type Segment, segmentsOf } from '../walking/paths.js';
import { AddedPart, bringsValue, type Change, collectParts, type Diff, mapParts } from './types.js';

/** `diff` without the changes that `ignore` says; added configs that nothing uses any more go as well. */
export function ignoringChanges(diff: Diff, ignore: (change: Change) => boolean): Diff {
  const changes = diff.changes.filter((change) => !ignore(change));
  if (changes.length === diff.changes.length) return diff;
  // Where things stand afterwards depends on all changes.
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

/** `diff` with the added configs that its changes need, counted anew. */
function withAddedOf(diff: Diff): Diff {
  const numbers = new Map<number, number>();
  const need = (value: unknown): void => {
    for (const part of collectParts(value)) {
      if (part instanceof AddedPart && !numbers.has(part.index)) numbers.set(part.index, numbers.size);
    }
  };
  for (const change of diff.changes) if (bringsValue(change)) need(change.value);
  // What this adds is looked through as well.
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
