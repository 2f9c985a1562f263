/** @file Tags of a node's fields: what its class declares, and what was added and removed since. */
import type { Tag } from '../types.js';

/** What is read of a field here. */
interface DeclaredTags {
  readonly name: string;
  readonly tags: readonly Tag[];
}

/** How a field's tags differ from those of its declaration; both lists are sorted by name. */
export interface TagChange {
  readonly added: readonly Tag[];
  readonly removed: readonly Tag[];
}

/** The changes of a node by field; never written to, so that copies and drafts share it. */
export type TagChanges = ReadonlyMap<string, TagChange>;

/** `tags` without doubles, sorted by name. */
export function sortTags(tags: Iterable<Tag>): readonly Tag[] {
  return [...new Set(tags)].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The tags of a field: declared, plus added, minus removed. */
export function tagsAfter(field: DeclaredTags, change: TagChange | undefined): readonly Tag[] {
  if (change === undefined) return field.tags;
  return sortTags([...field.tags.filter((tag) => !change.removed.includes(tag)), ...change.added]);
}

/** `changes` with those that make `wanted` the tags of the field. */
export function withFieldTags(
  changes: TagChanges | undefined,
  field: DeclaredTags,
  wanted: readonly Tag[],
): TagChanges | undefined {
  const added = wanted.filter((tag) => !field.tags.includes(tag));
  const removed = field.tags.filter((tag) => !wanted.includes(tag));
  const next = new Map(changes);
  if (added.length + removed.length === 0) next.delete(field.name);
  else next.set(field.name, { added, removed });
  return next.size === 0 ? undefined : next;
}

/** Whether two nodes of one class have the same tags. */
export function sameTags(a: TagChanges | undefined, b: TagChanges | undefined): boolean {
  if (a === b) return true;
  if (a?.size !== b?.size) return false;
  for (const [name, change] of a ?? []) {
    const other = b?.get(name);
    if (other === undefined) return false;
    if (!sameList(change.added, other.added) || !sameList(change.removed, other.removed)) return false;
  }
  return true;
}

function sameList(a: readonly Tag[], b: readonly Tag[]): boolean {
  return a.length === b.length && a.every((tag, i) => tag === b[i]);
}
