/** @file Which old item stands where in a list that a diff edits. */
import type { Change, InsertChange, MoveChange, Path, RemoveChange } from './types.js';

/** An item of the new list: one that came, or the old one with this index. */
type Item =
  | { readonly kind: 'insert'; readonly change: InsertChange }
  | { readonly kind: 'old'; readonly i: number };

/** One list's edits. */
export class ListMap {
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
    const gap = this.gaps.get(change.before);
    if (gap === undefined) this.gaps.set(change.before, [item]);
    else gap.push(item);
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
export function listMaps(changes: readonly Change[], intern: (path: Path) => Path): Map<Path, ListMap> {
  const maps = new Map<Path, ListMap>();
  for (const change of changes) {
    if (change.kind !== 'insert' && change.kind !== 'remove' && change.kind !== 'move') continue;
    const list = intern(change.kind === 'insert' ? change.path : change.path?.parent);
    let map = maps.get(list);
    if (map === undefined) maps.set(list, (map = new ListMap(change.length)));
    map.add(change);
  }
  return maps;
}
