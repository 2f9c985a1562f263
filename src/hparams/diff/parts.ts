/** @file The configs that stand in the values of a diff. */
import { mapContainers, partsOf } from '../nodes/containers.js';
import { AddedPart, type Change, type DiffValue, OldPart, type PartConfig } from './types.js';

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

/** A change with each config in its values replaced. */
export function mapChange<C extends Change>(change: C, swap: (part: OldPart | AddedPart) => DiffValue): C {
  if (change.kind === 'class' || change.kind === 'kind') return change;
  const made: { -readonly [K in 'old' | 'value']?: DiffValue } = {};
  if ('old' in change) made.old = mapParts(change.old, swap);
  if ('value' in change) made.value = mapParts(change.value, swap);
  return { ...change, ...made };
}

/** A config with each config in its values replaced. */
export function mapPart(part: PartConfig, swap: (part: OldPart | AddedPart) => DiffValue): PartConfig {
  return { ...part, values: mapParts(part.values, swap) as Record<string, DiffValue> };
}
