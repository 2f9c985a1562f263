/** @file Difference of two configs. */

import type { FieldInfo } from '../fields/fields.js';
import { tagsAfter } from '../nodes/carriers.js';
import { getOrMake, isContainer, mapContainers, partsOf } from '../nodes/containers.js';
import { nodesIn } from '../nodes/held.js';
import { type ConfigNode, fieldTags, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import { explicitTags } from '../tags.js';
import { isTouched, leavesMatch } from '../walking/equal.js';
import { formatSegment } from '../walking/paths.js';
import { type Alignment, alignStructures } from './align.js';
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
} from './changes.js';
import { listEdits } from './lists.js';
import type { Member } from './structure.js';

/**
 * The changes that turn `old` (a config, or containers of configs) into `now`. Moved and newly shared configs are
 * recognised; of lists, only inserted, removed and moved items are listed. Defaults count as values, as in `isEqual`:
 * equal configs have an empty diff. Takes time linear in the size of both (n log n for long lists).
 *
 * @throws ConfigError for a config that contains itself.
 */
export function buildDiff(old: unknown, now: unknown): Diff {
  return new Differ(old, now).run();
}

class Differ {
  private readonly alignment: Alignment;
  private readonly changes: Change[] = [];
  private readonly added = new Map<Member, AddedPart>();
  private readonly removed = new Set<Member>();
  private readonly mentioned = new Map<Member, OldPart>();

  constructor(
    private readonly old: unknown,
    private readonly now: unknown,
  ) {
    this.alignment = alignStructures(old, now);
    // Only now are the defaults made that just one of the two had looked at.
    this.alignment.old.settle();
    this.alignment.now.settle();
  }

  run(): Diff {
    this.differ(this.old, this.now, undefined);
    for (const member of this.alignment.old.members) {
      const { node, partner, isSettled } = member;
      if (!isSettled && partner !== undefined && partner.node !== node)
        this.differConfigs(member, partner.node);
    }
    const added: PartConfig[] = [];
    // Describing a part may add others at the end.
    for (const member of this.added.keys()) added.push(this.describe(member, 'now'));
    const removed: PartConfig[] = [];
    for (const member of this.removed) removed.push(this.describe(member, 'old'));
    return { changes: this.changes, added, removed, places: this.places() };
  }

  private places(): DiffPlace[] {
    // The way to a config in the new structure may lead through others than that in the old one.
    const climbed = new Set<Member>();
    for (const { partner } of this.mentioned.keys()) {
      for (let at = partner; at !== undefined && !climbed.has(at); at = at.owner) {
        climbed.add(at);
        const owner = at.owner?.partner;
        if (owner !== undefined && this.mentioned.has(owner)) break;
        if (owner !== undefined) this.mention(owner);
      }
    }
    return [...this.mentioned.keys()].map(({ node, path, partner }) => ({
      path,
      info: node.info,
      kind: node.kind,
      ...(partner && { newPath: { path: partner.path } }),
    }));
  }

  /** Makes sure that the config and those around it are among the places. */
  private mention(member: Member): OldPart {
    const part = getOrMake(this.mentioned, member, () => new OldPart(member.path));
    for (let at = member.owner; at !== undefined && !this.mentioned.has(at); at = at.owner)
      this.mentioned.set(at, new OldPart(at.path));
    return part;
  }

  /** Adds a change at `path`. */
  private change(path: Path, { kind, ...change }: ChangeAt): void {
    this.changes.push({ kind, path, ...change } as Change);
  }

  private differConfigs(member: Member, now: ConfigNode): void {
    const { node: old, path: at } = member;
    const before = this.changes.length;
    if (old.info !== now.info) this.change(at, { kind: 'class', old: old.info, value: now.info });
    if (old.kind !== now.kind) this.change(at, { kind: 'kind', old: old.kind, value: now.kind });
    for (const field of now.info.allFields) {
      const path = { parent: at, segment: field.name };
      this.differTags(old, now, field, path);
      this.differFields(old, now, field, path);
    }
    for (const field of old.info.allFields) {
      if (!now.info.fields.has(field.name) && isExplicit(old, field.name))
        this.delete(old, field, { parent: at, segment: field.name });
    }
    if (this.changes.length > before) this.mention(member);
  }

  private differTags(old: ConfigNode, now: ConfigNode, field: FieldInfo, path: Path): void {
    // Tags that the new class declares come with it; those that were put on a field it has too stay.
    const kept = old.info.fields.has(field.name) ? old.tags?.get(field.name) : undefined;
    if (kept === undefined && now.tags?.get(field.name) === undefined && old.info === now.info) return;
    const before = tagsAfter(field, kept);
    const after = fieldTags(now, field);
    for (const tag of before) if (!after.includes(tag)) this.change(path, { kind: 'removeTag', tag });
    for (const tag of after) if (!before.includes(tag)) this.change(path, { kind: 'addTag', tag });
  }

  private differFields(old: ConfigNode, now: ConfigNode, field: FieldInfo, path: Path): void {
    const { name } = field;
    const oldField = old.info.fields.get(name);
    const was = oldField !== undefined && isExplicit(old, name);
    const is = isExplicit(now, name);
    if (was && is) this.differ(rawValue(old, oldField), rawValue(now, field), path);
    else if (old.info === now.info) {
      if (!isTouched(old, name) && !isTouched(now, name)) return;
      if (this.same(rawValue(old, field), rawValue(now, field))) return;
      // A default may be elsewhere too, so that it is more than the lack of a value.
      if (is || this.isElsewhere(rawValue(now, field))) this.put(was, old, now, field, path);
      else if (was || isTouched(old, name)) this.delete(old, field, path);
    } else if (is || (isTouched(now, name) && this.isElsewhere(rawValue(now, field)))) {
      this.put(was, old, now, field, path);
    } else if (was) this.delete(old, oldField, path);
  }

  private put(was: boolean, old: ConfigNode, now: ConfigNode, field: FieldInfo, path: Path): void {
    const value = this.encodeNew(rawValue(now, field));
    if (was) this.change(path, { kind: 'modify', old: this.encodeOld(rawValue(old, field)), value });
    else this.change(path, { kind: 'set', value });
  }

  private delete(old: ConfigNode, field: FieldInfo, path: Path): void {
    this.change(path, { kind: 'delete', old: this.encodeOld(rawValue(old, field)) });
  }

  private isElsewhere(value: unknown): boolean {
    return nodesIn(value).some((node) => {
      const member = this.alignment.now.find(node);
      return member !== undefined && (member.isShared || member.partner !== undefined);
    });
  }

  /** The changes that make one value another at the same place. */
  private differ(old: unknown, now: unknown, path: Path): void {
    if (isContainer(old) && isContainer(now) && this.alignment.containersAfter.get(old) === now) {
      if (Array.isArray(old)) this.differLists(old, now as unknown[], path);
      else this.differRecords(old, now as Record<string, unknown>, path);
    } else if (!this.same(old, now)) this.modify(old, now, path);
  }

  private modify(old: unknown, now: unknown, path: Path): void {
    this.change(path, { kind: 'modify', old: this.encodeOld(old), value: this.encodeNew(now) });
  }

  private differRecords(old: Record<string, unknown>, now: Record<string, unknown>, path: Path): void {
    for (const key of Object.keys(old)) {
      const at = { parent: path, segment: { key } };
      if (Object.hasOwn(now, key)) this.differ(old[key], now[key], at);
      else this.change(at, { kind: 'delete', old: this.encodeOld(old[key]) });
    }
    for (const key of Object.keys(now)) {
      if (Object.hasOwn(old, key)) continue;
      this.change({ parent: path, segment: { key } }, { kind: 'set', value: this.encodeNew(now[key]) });
    }
  }

  private differLists(old: unknown[], now: unknown[], path: Path): void {
    const { length } = old;
    // Configs at the same place are partners.
    const differ = (i: number, j: number): void => {
      if (nodeOf(old[i]) === undefined) this.differ(old[i], now[j], { parent: path, segment: i });
    };
    const olds = old.map((item) => this.keyOfOld(item));
    const news = now.map((item) => this.keyOfNew(item));
    for (const edit of listEdits(olds, news)) {
      if (edit.kind === 'insert') {
        const value = this.encodeNew(now[edit.j]);
        this.change(path, { kind: 'insert', before: edit.before, value, length });
        continue;
      }
      const item = old[edit.i];
      const at = { parent: path, segment: edit.i };
      if (edit.kind === 'same') differ(edit.i, edit.j);
      else if (edit.kind === 'modify') this.modify(item, now[edit.j], at);
      else if (edit.kind === 'remove') this.change(at, { kind: 'remove', old: this.encodeOld(item), length });
      else this.change(at, { kind: 'move', before: edit.before, old: this.encodeOld(item), length });
    }
  }

  private keyOfOld(item: unknown): unknown {
    const { contents, old, containersAfter } = this.alignment;
    const isPart = nodeOf(item) !== undefined || containersAfter.has(item as object);
    return isPart ? item : contents.of(item, old);
  }

  private keyOfNew(item: unknown): unknown {
    const { contents, now, containersBefore } = this.alignment;
    const node = nodeOf(item);
    if (node !== undefined) return (now.of(node).partner?.node ?? node).proxy;
    return containersBefore.get(item as object) ?? contents.of(item, now);
  }

  /** Whether two values are the same, their configs being partners. */
  private same(old: unknown, now: unknown): boolean {
    const a = nodeOf(old);
    const b = nodeOf(now);
    if (a !== undefined || b !== undefined)
      return a !== undefined && b !== undefined && this.alignment.old.of(a).partner?.node === b;
    const olds = partsOf(old);
    const news = partsOf(now);
    if (olds === undefined || news === undefined) return olds === news && leavesMatch(old, now);
    if (olds.length !== news.length || Object.getPrototypeOf(old) !== Object.getPrototypeOf(now))
      return false;
    const others = new Map(olds.map(([segment, part]) => [formatSegment(segment, true), part]));
    return news.every(([segment, part]) => {
      const name = formatSegment(segment, true);
      return others.has(name) && this.same(others.get(name), part);
    });
  }

  private encodeOld(value: unknown): DiffValue {
    return mapContainers(value, (leaf) => {
      const node = nodeOf(leaf);
      if (node === undefined) return leaf;
      const member = this.alignment.old.of(node);
      if (member.partner === undefined) this.removed.add(member);
      return this.mention(member);
    });
  }

  private encodeNew(value: unknown): DiffValue {
    return mapContainers(value, (leaf) => {
      const node = nodeOf(leaf);
      if (node === undefined) return leaf;
      const member = this.alignment.now.of(node);
      if (member.partner !== undefined) return this.mention(member.partner);
      return getOrMake(this.added, member, () => new AddedPart(this.added.size));
    });
  }

  private describe({ node, path }: Member, side: 'old' | 'now'): PartConfig {
    const values: Record<string, DiffValue> = {};
    for (const field of node.info.fields.values()) {
      const { name } = field;
      if (!isExplicit(node, name)) {
        if (side === 'old' || !isTouched(node, name) || !this.isElsewhere(rawValue(node, field))) continue;
      }
      const value = rawValue(node, field);
      values[name] = side === 'old' ? this.encodeOld(value) : this.encodeNew(value);
    }
    const tags: TagState[] = [];
    for (const [field, { added, removed }] of explicitTags(node)) {
      for (const tag of added) tags.push({ field, tag, present: true });
      for (const tag of removed) tags.push({ field, tag, present: false });
    }
    return { path, info: node.info, kind: node.kind, values, tags };
  }
}

type ChangeAt = Change extends infer C ? (C extends Change ? Omit<C, 'path'> : never) : never;
