/** @file The difference of two configs. */

import type { FieldInfo } from '../fields/fields.js';
import { isContainer, mapContainers, partsOf } from '../nodes/containers.js';
import { type ConfigNode, collectNodes, fieldTags, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import { tagsAfter } from '../nodes/nodeTags.js';
import { explicitTags } from '../tags.js';
import { leavesMatch } from '../walking/equal.js';
import { formatSegment, type Segment } from '../walking/paths.js';
import { walk } from '../walking/traverse.js';
import { type Alignment, alignStructures } from './align.js';
import { Contents } from './contents.js';
import { listEdits } from './listEdits.js';
import { PathTable } from './pathTable.js';
import { isTouched, shownEdges } from './shown.js';
import {
  AddedPart,
  type Change,
  type Diff,
  type DiffPlace,
  type DiffValue,
  OldPart,
  type PartConfig,
  type Path,
  type TagState,
} from './types.js';

/**
 * What makes `old` (a config, or containers of configs) what `now` is. Configs that moved, or became shared, are
 * recognised; of lists, only the items that came, went or moved are named. Defaults count as values, as in `isEqual`:
 * equal configs have an empty diff. Takes time linear in the size of both (n log n for long lists).
 *
 * @throws ConfigError where a config contains itself.
 */
export function buildDiff(old: unknown, now: unknown): Diff {
  return new Differ(old, now).run();
}

class Differ {
  private readonly alignment: Alignment;
  private readonly contents = new Contents();
  private readonly table = new PathTable();
  private readonly oldPaths = new Map<ConfigNode, Path>();
  private readonly newPaths = new Map<ConfigNode, Path>();
  /** New configs that stand in more than one place. */
  private readonly shared = new Set<ConfigNode>();
  private readonly nodeAt = new Map<Path, ConfigNode>();
  private readonly newNodeAt = new Map<Path, ConfigNode>();
  private readonly changes: Change[] = [];
  private readonly added = new Map<ConfigNode, AddedPart>();
  private readonly removed = new Set<ConfigNode>();
  private readonly mentioned = new Map<ConfigNode, OldPart>();

  constructor(
    private readonly old: unknown,
    private readonly now: unknown,
  ) {
    this.alignment = alignStructures(old, now);
  }

  run(): Diff {
    // Only now are the defaults made that just one of the two had looked at.
    walk(this.old, {
      children: shownEdges,
      enter: (node, path) => {
        const own = this.table.intern(path);
        this.oldPaths.set(node, own);
        this.nodeAt.set(own, node);
      },
    });
    walk(this.now, {
      children: shownEdges,
      enter: (node, path) => {
        const own = this.table.intern(path);
        this.newPaths.set(node, own);
        this.newNodeAt.set(own, node);
      },
      again: (node) => this.shared.add(node),
    });
    this.differ(this.old, this.now, undefined);
    for (const old of this.oldPaths.keys()) {
      const now = this.alignment.partnerOfOld(old);
      if (now !== undefined && now !== old) this.differConfigs(old, now);
    }
    const added: PartConfig[] = [];
    // Describing a part may name others, which then stand at the end.
    for (const node of this.added.keys()) added.push(this.describe(node, 'new'));
    const removed: PartConfig[] = [];
    for (const node of this.removed) removed.push(this.describe(node, 'old'));
    return { changes: this.changes, added, removed, places: this.places() };
  }

  private places(): DiffPlace[] {
    // The way to a config in the new structure may lead through others than that in the old one.
    const climbed = new Set<Path>();
    for (const node of this.mentioned.keys()) {
      let at = this.newPathOf(node)?.path;
      while (at !== undefined && !climbed.has(at)) {
        climbed.add(at);
        at = at.parent;
        const owner = this.newNodeAt.get(at);
        const old = owner && this.alignment.partnerOfNew(owner);
        if (old === undefined) continue;
        if (this.mentioned.has(old)) break;
        this.mention(old);
      }
    }
    return [...this.mentioned].map(([node, { path }]) => {
      const newPath = this.newPathOf(node);
      return { path, info: node.info, kind: node.kind, ...(newPath && { newPath }) };
    });
  }

  private newPathOf(old: ConfigNode): DiffPlace['newPath'] {
    const now = this.alignment.partnerOfOld(old);
    return now && this.newPaths.has(now) ? { path: this.newPaths.get(now) } : undefined;
  }

  /** Makes sure that the config and those around it are among the places. */
  private mention(node: ConfigNode): OldPart {
    let part = this.mentioned.get(node);
    if (part !== undefined) return part;
    const path = this.oldPaths.get(node);
    this.mentioned.set(node, (part = new OldPart(path)));
    for (let at = path; at !== undefined; ) {
      at = at.parent;
      const owner = this.nodeAt.get(at);
      if (owner === undefined) continue;
      if (this.mentioned.has(owner)) break;
      this.mentioned.set(owner, new OldPart(at));
    }
    return part;
  }

  private differConfigs(old: ConfigNode, now: ConfigNode): void {
    const at = this.oldPaths.get(old);
    const before = this.changes.length;
    if (old.info !== now.info) this.changes.push({ kind: 'class', path: at, old: old.info, value: now.info });
    if (old.kind !== now.kind) this.changes.push({ kind: 'kind', path: at, old: old.kind, value: now.kind });
    for (const field of now.info.fields.values()) {
      if (isPlainlySame(old, now, field)) continue;
      const path = this.table.step(at, field.name);
      const oldField = old.info.fields.get(field.name);
      this.differTags(old, oldField, now, field, path);
      this.differFields(old, oldField, now, field, path);
    }
    for (const field of old.info.fields.values()) {
      if (!now.info.fields.has(field.name) && isExplicit(old, field.name))
        this.delete(old, field, this.table.step(at, field.name));
    }
    if (this.changes.length > before) this.mention(old);
  }

  private differTags(
    old: ConfigNode,
    oldField: FieldInfo | undefined,
    now: ConfigNode,
    field: FieldInfo,
    path: Path,
  ): void {
    // Tags that the new class declares come with it; those that were put on a field it has too stay.
    const kept = oldField === undefined ? undefined : old.tags?.get(field.name);
    if (kept === undefined && now.tags?.get(field.name) === undefined && old.info === now.info) return;
    const before = tagsAfter(field, kept);
    const after = fieldTags(now, field);
    for (const tag of before) if (!after.includes(tag)) this.changes.push({ kind: 'removeTag', path, tag });
    for (const tag of after) if (!before.includes(tag)) this.changes.push({ kind: 'addTag', path, tag });
  }

  private differFields(
    old: ConfigNode,
    oldField: FieldInfo | undefined,
    now: ConfigNode,
    field: FieldInfo,
    path: Path,
  ): void {
    const { name } = field;
    const was = oldField !== undefined && isExplicit(old, name);
    const is = isExplicit(now, name);
    if (was && is) this.differ(rawValue(old, oldField), rawValue(now, field), path);
    else if (old.info === now.info) {
      if (!isTouched(old, name) && !isTouched(now, name)) return;
      if (this.same(rawValue(old, field), rawValue(now, field))) return;
      // A default may stand elsewhere too, so that it is more than the lack of a value.
      if (is || this.standsElsewhere(rawValue(now, field))) this.put(was, old, now, field, path);
      else if (was || isTouched(old, name)) this.delete(old, field, path);
    } else if (is || (isTouched(now, name) && this.standsElsewhere(rawValue(now, field)))) {
      this.put(was, old, now, field, path);
    } else if (was) this.delete(old, oldField, path);
  }

  private put(was: boolean, old: ConfigNode, now: ConfigNode, field: FieldInfo, path: Path): void {
    const value = this.encodeNew(rawValue(now, field));
    if (was) this.changes.push({ kind: 'modify', path, old: this.encodeOld(rawValue(old, field)), value });
    else this.changes.push({ kind: 'set', path, value });
  }

  private delete(old: ConfigNode, field: FieldInfo, path: Path): void {
    this.changes.push({ kind: 'delete', path, old: this.encodeOld(rawValue(old, field)) });
  }

  private standsElsewhere(value: unknown): boolean {
    const nodes: ConfigNode[] = [];
    collectNodes(value, nodes);
    return nodes.some((node) => this.shared.has(node) || this.alignment.partnerOfNew(node) !== undefined);
  }

  /** The changes that make one value another that stands at the same place. */
  private differ(old: unknown, now: unknown, path: Path): void {
    if (isContainer(old) && isContainer(now) && this.alignment.partnerOfOld(old) === now) {
      if (Array.isArray(old)) this.differLists(old, now as unknown[], path);
      else this.differRecords(old, now as Record<string, unknown>, path);
    } else if (!this.same(old, now)) {
      this.changes.push({ kind: 'modify', path, old: this.encodeOld(old), value: this.encodeNew(now) });
    }
  }

  private differRecords(old: Record<string, unknown>, now: Record<string, unknown>, path: Path): void {
    for (const key of Object.keys(old)) {
      const at = this.table.step(path, { key });
      if (Object.hasOwn(now, key)) this.differ(old[key], now[key], at);
      else this.changes.push({ kind: 'delete', path: at, old: this.encodeOld(old[key]) });
    }
    for (const key of Object.keys(now)) {
      if (Object.hasOwn(old, key)) continue;
      this.changes.push({
        kind: 'set',
        path: this.table.step(path, { key }),
        value: this.encodeNew(now[key]),
      });
    }
  }

  private differLists(old: unknown[], now: unknown[], path: Path): void {
    const olds = old.map((item) => this.keyOfOld(item));
    const news = now.map((item) => this.keyOfNew(item));
    const { length } = old;
    for (const edit of listEdits(olds, news)) {
      if (edit.kind === 'insert') {
        const value = this.encodeNew(now[edit.j]);
        this.changes.push({ kind: 'insert', path, before: edit.before, value, length });
        continue;
      }
      const item = old[edit.i];
      const at = this.table.step(path, edit.i);
      if (edit.kind === 'same') this.differ(item, now[edit.j], at);
      else if (edit.kind === 'modify') {
        const value = this.encodeNew(now[edit.j]);
        this.changes.push({ kind: 'modify', path: at, old: this.encodeOld(item), value });
      } else if (edit.kind === 'remove') {
        this.changes.push({ kind: 'remove', path: at, old: this.encodeOld(item), length });
      } else {
        this.changes.push({ kind: 'move', path: at, before: edit.before, old: this.encodeOld(item), length });
      }
    }
  }

  private keyOfOld(item: unknown): unknown {
    const part = nodeOf(item) ?? (isContainer(item) ? item : undefined);
    if (part === undefined) return this.contents.of(item);
    return this.alignment.partnerOfOld(part) === undefined && nodeOf(item) === undefined
      ? this.contents.of(item)
      : part;
  }

  private keyOfNew(item: unknown): unknown {
    const node = nodeOf(item);
    if (node !== undefined) return this.alignment.partnerOfNew(node) ?? node;
    return (isContainer(item) ? this.alignment.partnerOfNew(item) : undefined) ?? this.contents.of(item);
  }

  /** Whether two values are the same, their configs being partners. */
  private same(old: unknown, now: unknown): boolean {
    const a = nodeOf(old);
    const b = nodeOf(now);
    if (a !== undefined || b !== undefined)
      return a !== undefined && b !== undefined && this.alignment.partnerOfOld(a) === b;
    const olds = partsOf(old);
    const news = partsOf(now);
    if (olds === undefined || news === undefined) return olds === news && leavesMatch(old, now);
    if (olds.length !== news.length || Object.getPrototypeOf(old) !== Object.getPrototypeOf(now))
      return false;
    const others = new Map(olds.map(([segment, part]) => [stepText(segment), part]));
    return news.every(
      ([segment, part]) => others.has(stepText(segment)) && this.same(others.get(stepText(segment)), part),
    );
  }

  private encodeOld(value: unknown): DiffValue {
    return mapContainers(value, (leaf) => {
      const node = nodeOf(leaf);
      if (node === undefined) return leaf;
      if (this.alignment.partnerOfOld(node) === undefined) this.removed.add(node);
      return this.mention(node);
    });
  }

  private encodeNew(value: unknown): DiffValue {
    return mapContainers(value, (leaf) => {
      const node = nodeOf(leaf);
      if (node === undefined) return leaf;
      const old = this.alignment.partnerOfNew(node);
      if (old !== undefined) return this.mention(old);
      let part = this.added.get(node);
      if (part === undefined) {
        this.added.set(node, (part = new AddedPart(this.added.size)));
      }
      return part;
    });
  }

  private describe(node: ConfigNode, side: 'old' | 'new'): PartConfig {
    const values: Record<string, DiffValue> = {};
    for (const field of node.info.fields.values()) {
      const { name } = field;
      if (!isExplicit(node, name)) {
        if (side === 'old' || !isTouched(node, name) || !this.standsElsewhere(rawValue(node, field)))
          continue;
      }
      const value = rawValue(node, field);
      values[name] = side === 'old' ? this.encodeOld(value) : this.encodeNew(value);
    }
    const tags: TagState[] = [];
    for (const [field, { added, removed }] of explicitTags(node)) {
      for (const tag of added) tags.push({ field, tag, present: true });
      for (const tag of removed) tags.push({ field, tag, present: false });
    }
    const path = side === 'old' ? this.oldPaths.get(node) : this.newPaths.get(node);
    return { path, info: node.info, kind: node.kind, values, tags };
  }
}

function stepText(segment: Segment): string {
  return formatSegment(segment, true);
}

/** Whether the field was touched in neither, or holds the same number or text in both: most fields of most configs do. */
function isPlainlySame(old: ConfigNode, now: ConfigNode, { name }: FieldInfo): boolean {
  if (old.info !== now.info || old.tags !== undefined || now.tags !== undefined) return false;
  const value = now.values[name];
  if (value === undefined) return !isTouched(old, name) && !isTouched(now, name);
  return typeof value !== 'object' && Object.is(old.values[name], value);
}
