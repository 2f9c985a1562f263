/** @file The way back: a diff that undoes another. */

import { ConfigError } from '../errors.js';
import { append, getOrMake, mapContainers } from '../nodes/containers.js';
import { formatLink } from '../walking/paths.js';
import {
  AddedPart,
  type Change,
  type Diff,
  type DiffPlace,
  type DiffValue,
  type InsertChange,
  type MoveChange,
  OldPart,
  type PartConfig,
  type Path,
  PathTable,
  type RemoveChange,
  splitPath,
} from './types.js';

/**
 * The diff that makes the old structure of the new one: what was added is removed, what was moved goes back.
 *
 * @throws ConfigError for a diff from which changes were taken or to which others were merged, where it is not known any
 *   more where things stand in the new structure.
 */
export function invertDiff(diff: Diff): Diff {
  return new Inverter(diff).run();
}

class Inverter {
  private readonly table = new PathTable();
  private readonly newPaths = new Map<Path, DiffPlace['newPath']>();
  private readonly removed = new Map<Path, AddedPart>();
  private readonly lists: ReadonlyMap<Path, ListMap>;

  constructor(private readonly diff: Diff) {
    for (const place of diff.places) this.newPaths.set(this.table.intern(place.path), place.newPath);
    for (const [i, part] of diff.removed.entries())
      this.removed.set(this.table.intern(part.path), new AddedPart(i));
    this.lists = listMaps(diff.changes, (path) => this.table.intern(path));
  }

  run(): Diff {
    const changes: Change[] = [];
    const listed = new Set<Path>();
    for (const change of this.diff.changes) {
      const isItem = change.kind === 'remove' || change.kind === 'move';
      if (change.kind !== 'insert' && !isItem) {
        changes.push(this.invert(change));
        continue;
      }
      const list = this.table.intern(isItem ? change.path!.parent : change.path);
      // Which item goes before which is a question of the whole list.
      if (!listed.has(list)) append(changes, this.invertList(list, this.lists.get(list)!));
      listed.add(list);
    }
    const { added, removed } = this.diff;
    return {
      changes,
      added: removed.map((part) => this.part(part)),
      removed: added.map((part) => this.part(part)),
      places: this.places(),
    };
  }

  private invert(change: Exclude<Change, { kind: 'insert' | 'remove' | 'move' }>): Change {
    if (change.kind === 'class')
      return { kind: 'class', path: this.place(change.path), old: change.value, value: change.old };
    if (change.kind === 'kind')
      return { kind: 'kind', path: this.place(change.path), old: change.value, value: change.old };
    const path = this.path(change.path);
    switch (change.kind) {
      case 'set':
        return { kind: 'delete', path, old: this.value(change.value) };
      case 'delete':
        return { kind: 'set', path, value: this.value(change.old) };
      case 'modify':
        return { kind: 'modify', path, old: this.value(change.value), value: this.value(change.old) };
      default:
        return { kind: change.kind === 'addTag' ? 'removeTag' : 'addTag', path, tag: change.tag };
    }
  }

  private invertList(list: Path, map: ListMap): Change[] {
    const path = this.path(list);
    const length = map.items.length;
    const changes: Change[] = [];
    for (const [j, item] of map.items.entries()) {
      if (item.kind !== 'insert') continue;
      changes.push({
        kind: 'remove',
        path: this.table.step(path, j),
        old: this.value(item.change.value),
        length,
      });
    }
    const before: (number | 'end')[] = [];
    let next: number | 'end' = 'end';
    for (let i = map.length - 1; i >= 0; i -= 1) {
      before[i] = next;
      if (!map.edits.has(i)) next = map.newIndex(i);
    }
    for (const [i, change] of [...map.edits].sort(([a], [b]) => a - b)) {
      const value = this.value(change.old);
      if (change.kind === 'remove') changes.push({ kind: 'insert', path, before: before[i]!, value, length });
      else
        changes.push({
          kind: 'move',
          path: this.table.step(path, map.newIndex(i)),
          before: before[i]!,
          old: value,
          length,
        });
    }
    return changes;
  }

  /** The new path of a config. */
  private place(path: Path): Path {
    const known = this.newPaths.get(this.table.intern(path));
    if (known !== undefined) return this.table.intern(known.path);
    const text = formatLink(path) || 'the root';
    throw new ConfigError(
      `This diff cannot be inverted: it does not say where ${text} stands afterwards, because it was filtered or merged. ` +
        'Invert the diff first, then filter it; of a merge, apply it to its base, and build the diff from the result to the base.',
      { path: text },
    );
  }

  /** The new path of a field, or of what is inside of it. */
  private path(path: Path): Path {
    const { config, field, inner } = splitPath(path);
    let old: Path = field === undefined ? undefined : this.table.step(this.table.intern(config), field);
    let now: Path = field === undefined ? undefined : this.table.step(this.place(config), field);
    for (const segment of inner) {
      const list = typeof segment === 'number' ? this.lists.get(old) : undefined;
      now = this.table.step(now, list === undefined ? segment : list.newIndex(segment as number));
      old = this.table.step(old, segment);
    }
    return now;
  }

  private value(value: DiffValue): DiffValue {
    return mapContainers(value, (leaf) => {
      if (leaf instanceof AddedPart) return new OldPart(this.table.intern(this.diff.added[leaf.index]!.path));
      if (!(leaf instanceof OldPart)) return leaf;
      return this.removed.get(this.table.intern(leaf.path)) ?? new OldPart(this.place(leaf.path));
    });
  }

  private part(part: PartConfig): PartConfig {
    const entries = Object.entries(part.values).map(([name, value]) => [name, this.value(value)]);
    return { ...part, path: this.table.intern(part.path), values: Object.fromEntries(entries) };
  }

  private places(): DiffPlace[] {
    const info = new Map(
      this.diff.changes.flatMap((change) =>
        change.kind === 'class' ? [[change.path, change.value] as const] : [],
      ),
    );
    const kind = new Map(
      this.diff.changes.flatMap((change) =>
        change.kind === 'kind' ? [[change.path, change.value] as const] : [],
      ),
    );
    const kept = this.diff.places.flatMap((place) => {
      if (place.newPath === undefined) return [];
      return [
        {
          path: this.table.intern(place.newPath.path),
          info: info.get(place.path) ?? place.info,
          kind: kind.get(place.path) ?? place.kind,
          newPath: { path: this.table.intern(place.path) },
        },
      ];
    });
    const gone = this.diff.added.map((part) => ({
      path: this.table.intern(part.path),
      info: part.info,
      kind: part.kind,
    }));
    return [...kept, ...gone];
  }
}

/** An item of the new list: one that came, or the old one with this index. */
type Item =
  | { readonly kind: 'insert'; readonly change: InsertChange }
  | { readonly kind: 'old'; readonly i: number };

/** One list's edits. */
class ListMap {
  /** The old items that go or move. */
  readonly edits = new Map<number, RemoveChange | MoveChange>();
  private readonly gaps = new Map<number | 'end', Item[]>();
  private made: { items: Item[]; places: Map<number, number> } | undefined;

  constructor(readonly length: number) {}

  add(change: InsertChange | RemoveChange | MoveChange): void {
    const i = change.kind === 'insert' ? -1 : (change.path!.segment as number);
    if (change.kind !== 'insert') this.edits.set(i, change);
    if (change.kind === 'remove') return;
    const item: Item = change.kind === 'insert' ? { kind: 'insert', change } : { kind: 'old', i };
    getOrMake(this.gaps, change.before, () => []).push(item);
  }

  /** The new list. */
  get items(): readonly Item[] {
    return this.make().items;
  }

  /** Where an old item stands in the new list; for one that is gone, where it would. */
  newIndex(i: number): number {
    return this.make().places.get(i) ?? i;
  }

  private make(): { items: Item[]; places: Map<number, number> } {
    if (this.made !== undefined) return this.made;
    const items: Item[] = [];
    for (let i = 0; i < this.length; i += 1) {
      items.push(...(this.gaps.get(i) ?? []));
      if (!this.edits.has(i)) items.push({ kind: 'old', i });
    }
    items.push(...(this.gaps.get('end') ?? []));
    const places = new Map(items.flatMap((item, j) => (item.kind === 'old' ? [[item.i, j] as const] : [])));
    this.made = { items, places };
    return this.made;
  }
}

/** The lists that changes edit, by their old paths. */
function listMaps(changes: readonly Change[], intern: (path: Path) => Path): Map<Path, ListMap> {
  const maps = new Map<Path, ListMap>();
  for (const change of changes) {
    if (change.kind !== 'insert' && change.kind !== 'remove' && change.kind !== 'move') continue;
    const list = intern(change.kind === 'insert' ? change.path : change.path?.parent);
    getOrMake(maps, list, () => new ListMap(change.length)).add(change);
  }
  return maps;
}
