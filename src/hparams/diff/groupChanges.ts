/** @file Changes of a diff by config, field and part. */

import { append, getOrMake } from '../nodes/containers.js';
import type { Tag } from '../types.js';
import { formatSegment } from '../walking/paths.js';
import {
  type Change,
  type ClassChange,
  type InsertChange,
  type KindChange,
  type MoveChange,
  type Path,
  type RemoveChange,
  splitPath,
  type TagChange,
} from './changes.js';

/** Changes of one value: its replacement, or changes inside it. */
export class ValueEdits {
  readonly whole: Extract<Change, { kind: 'set' | 'modify' | 'delete' }>[] = [];
  /** With their places among all changes, which order those before the same item. */
  readonly inserts: [order: number, change: InsertChange][] = [];
  /** Changes of the value as an item of a list. */
  readonly item: [order: number, change: RemoveChange | MoveChange][] = [];
  readonly parts = new Map<string, { readonly key: string | number; readonly edits: ValueEdits }>();

  get isEmpty(): boolean {
    return this.whole.length + this.inserts.length + this.parts.size === 0;
  }

  /** Whether something changes inside of a list. */
  get isList(): boolean {
    return this.inserts.length > 0 || [...this.parts.values()].some(({ key }) => typeof key === 'number');
  }

  /** Insertions before each old item of a list, in order; at infinity, those at the end. */
  arrivals(): Map<number, (InsertChange | MoveChange)[]> {
    const all: [order: number, change: InsertChange | MoveChange][] = [...this.inserts];
    for (const { edits } of this.parts.values())
      for (const [order, change] of edits.item) if (change.kind === 'move') all.push([order, change]);
    const arrivals = new Map<number, (InsertChange | MoveChange)[]>();
    for (const [, change] of all.sort(([a], [b]) => a - b)) {
      const at = change.before === 'end' ? Number.POSITIVE_INFINITY : change.before;
      getOrMake(arrivals, at, () => []).push(change);
    }
    return arrivals;
  }
}

/** A tag that is put on a field, or taken from it. */
export interface TagEdit {
  readonly field: string;
  readonly tag: Tag;
  readonly kind: TagChange['kind'];
}

/** Changes of one config. */
export class ConfigEdits {
  readonly class: ClassChange[] = [];
  readonly kind: KindChange[] = [];
  readonly tags: TagEdit[] = [];
  readonly fields = new Map<string, ValueEdits>();

  /** Merges changes of the same config at another path; false if both change the same field. */
  merge(other: ConfigEdits): boolean {
    if (this.class.length * other.class.length + this.kind.length * other.kind.length > 0) return false;
    this.class.push(...other.class);
    this.kind.push(...other.kind);
    append(this.tags, other.tags);
    for (const [name, edits] of other.fields) {
      if (this.fields.has(name)) return false;
      this.fields.set(name, edits);
    }
    return true;
  }
}

/** Changes by old path of the config, and of the containers around configs. */
export interface GroupedEdits {
  readonly configs: ReadonlyMap<Path, ConfigEdits>;
  readonly root: ValueEdits;
}

/** Groups changes by their config and value. */
export function groupChanges(changes: readonly Change[]): GroupedEdits {
  const configs = new Map<Path, ConfigEdits>();
  const root = new ValueEdits();
  const editsAt = (path: Path): ConfigEdits => getOrMake(configs, path, () => new ConfigEdits());
  for (const [order, change] of changes.entries()) {
    if (change.kind === 'class') editsAt(change.path).class.push(change);
    else if (change.kind === 'kind') editsAt(change.path).kind.push(change);
    else {
      const { config, field, inner } = splitPath(change.path);
      if (change.kind === 'addTag' || change.kind === 'removeTag') {
        editsAt(config).tags.push({ field: field!, tag: change.tag, kind: change.kind });
        continue;
      }
      let edits =
        field === undefined ? root : getOrMake(editsAt(config).fields, field, () => new ValueEdits());
      for (const segment of inner) {
        const key = typeof segment === 'object' ? segment.key : (segment as number);
        const name = formatSegment(segment, true);
        const part = getOrMake(edits.parts, name, () => ({ key, edits: new ValueEdits() }));
        edits = part.edits;
      }
      if (change.kind === 'insert') edits.inserts.push([order, change]);
      else if (change.kind === 'remove' || change.kind === 'move') edits.item.push([order, change]);
      else edits.whole.push(change as ValueEdits['whole'][number]);
    }
  }
  return { configs, root };
}
