/** @file Values of the base with the changes of a diff, computed before anything is written. */
import { getPath } from '../editing/access.js';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { isContainer, mapContainers, partsOf, refusedKeys } from '../nodes/containers.js';
import { type ConfigNode, hasValue, nodeOf, rawValue } from '../nodes/node.js';
import { leavesMatch } from '../walking/equal.js';
import { formatSegment, type PathLink, type Segment, segmentsOf } from '../walking/paths.js';
import { AddedPart, type Diff, type DiffPlace, type DiffValue, OldPart, type Path } from './changes.js';
import { showDiffValue } from './formatDiff.js';
import type { ValueEdits } from './groupChanges.js';

const missing: unique symbol = Symbol('missing');

/** Follows paths, each step once however many paths begin with it. */
export class Resolver {
  private readonly known = new Map<PathLink, unknown>();

  constructor(private readonly root: unknown) {}

  /** The config at `path`, or undefined if there is none. */
  node(path: Path): ConfigNode | undefined {
    return nodeOf(this.value(path));
  }

  /** Why there is no config at `path`. */
  problem(path: Path): string {
    const segments = segmentsOf(path);
    try {
      return `${showValue(getPath(this.root, segments))} is where the diff has a config.`;
    } catch (error) {
      if (error instanceof ConfigError) return error.problem;
      throw error;
    }
  }

  private value(path: Path): unknown {
    const open: PathLink[] = [];
    let at = path;
    while (at !== undefined && !this.known.has(at)) {
      open.push(at);
      at = at.parent;
    }
    let value = at === undefined ? this.root : this.known.get(at);
    for (let link = open.pop(); link !== undefined; link = open.pop()) {
      value = this.step(value, link.segment);
      this.known.set(link, value);
    }
    return value;
  }

  private step(value: unknown, segment: Segment): unknown {
    const node = nodeOf(value);
    if (node === undefined) {
      if (isContainer(value)) {
        const key = typeof segment === 'object' ? segment.key : segment;
        return Object.hasOwn(value, key) ? (value as Record<string | number, unknown>)[key] : missing;
      }
      const wanted = formatSegment(segment, true);
      const part = partsOf(value)?.find(([own]) => formatSegment(own, true) === wanted);
      return part === undefined ? missing : part[1];
    }
    const field = typeof segment === 'string' ? node.info.fields.get(segment) : undefined;
    return field === undefined || !hasValue(node, field) ? missing : rawValue(node, field);
  }
}

type Whole = ValueEdits['whole'][number];

/** A new value, or `gone` for a deleted one. */
export type Edited = { readonly value: unknown } | 'gone';

/** Context of a `ValueEditor`. */
interface EditorOptions {
  readonly diff: Diff;
  readonly resolver: Resolver;
  /** The configs made for `diff.added`. */
  readonly added: readonly ConfigNode[];
  readonly checkOld: boolean;
  readonly report: (path: Path, problem: string) => void;
}

/** Makes values; reports everything that does not fit the base. Configs in the results are those of the base. */
export class ValueEditor {
  private readonly diff: Diff;
  private readonly resolver: Resolver;
  private readonly places: ReadonlyMap<Path, DiffPlace>;

  constructor(private readonly options: EditorOptions) {
    this.diff = options.diff;
    this.resolver = options.resolver;
    this.places = new Map(this.diff.places.map((place) => [place.path, place]));
  }

  private report(path: Path, problem: string): void {
    this.options.report(path, problem);
  }

  /** `current` is absent where nothing was set. */
  edit(
    current: { readonly value: unknown } | undefined,
    edits: ValueEdits,
    path: Path,
    what = 'field',
  ): Edited {
    const [change, another] = edits.whole;
    const inside = edits.parts.size + edits.inserts.length;
    if (another !== undefined || (change !== undefined && inside > 0))
      this.report(path, 'the diff changes it in two ways.');
    if (change !== undefined) return this.replace(current, change, path, what);
    if (current !== undefined) return { value: this.inside(current.value, edits, path) };
    this.report(path, 'it is not set, so nothing can be changed in it.');
    return 'gone';
  }

  private replace(
    current: { readonly value: unknown } | undefined,
    change: Whole,
    path: Path,
    what: string,
  ): Edited {
    if (change.kind === 'set') {
      if (current !== undefined)
        this.report(
          path,
          `it is set already, to ${this.show(current.value)}; the diff expects none, and sets ${this.show(change.value)}.`,
        );
      return { value: this.take(change.value, path) };
    }
    if (current === undefined) {
      if (change.kind === 'modify' || this.options.checkOld)
        this.report(
          path,
          `there is no such ${what} with a value; the diff expects ${this.show(change.old)}.`,
        );
    } else this.expect(current.value, change.old, path);
    return change.kind === 'delete' ? 'gone' : { value: this.take(change.value, path) };
  }

  private inside(value: unknown, edits: ValueEdits, path: Path): unknown {
    if (Array.isArray(value)) return this.insideList(value, edits, path);
    if (isContainer(value) && edits.inserts.length === 0)
      return this.insideRecord(value as Record<string, unknown>, edits, path);
    this.report(
      path,
      `it is ${this.show(value)}, in which the diff changes ${edits.inserts.length > 0 ? 'a list' : 'parts'}.`,
    );
    return value;
  }

  private insideRecord(record: Record<string, unknown>, edits: ValueEdits, path: Path): unknown {
    const made = { ...record };
    for (const { key, edits: inner } of edits.parts.values()) {
      const at: Path = { parent: path, segment: { key: String(key) } };
      if (typeof key === 'number' || refusedKeys.has(key)) {
        this.report(at, 'it is no key of a record.');
        continue;
      }
      const current = Object.hasOwn(record, key) ? { value: record[key] } : undefined;
      const edited = this.edit(current, inner, at, 'key');
      if (edited === 'gone') delete made[key];
      else made[key] = edited.value;
    }
    return made;
  }

  private insideList(list: readonly unknown[], edits: ValueEdits, path: Path): unknown {
    const items = list.map((value): Edited => ({ value }));
    const stays = list.map(() => true);
    for (const { key, edits: inner } of edits.parts.values()) {
      const at: Path = { parent: path, segment: typeof key === 'number' ? key : { key } };
      if (typeof key === 'string' || !(key >= 0 && key < list.length)) {
        this.report(at, `the list has no such item, its length is ${list.length}.`);
        continue;
      }
      const current = { value: list[key] };
      if (inner.item.length > 0) {
        stays[key] = false;
        this.expect(current.value, inner.item[0]![1].old, at);
      }
      const touched = inner.whole.length + inner.parts.size + inner.inserts.length > 0;
      if (touched) items[key] = this.edit(current, inner, at, 'item');
      if (inner.item.length > 1 || (inner.item[0]?.[1].kind === 'remove' && touched))
        this.report(at, 'the diff changes it in two ways.');
    }
    return this.order(items, stays, edits, path);
  }

  /** Inserts new and moved items between those that stay. */
  private order(
    items: readonly Edited[],
    stays: readonly boolean[],
    edits: ValueEdits,
    path: Path,
  ): unknown[] {
    const { length } = items;
    const arrivals = edits.arrivals();
    for (const at of arrivals.keys()) {
      if (Number.isFinite(at) && !(at >= 0 && at <= length))
        this.report(
          path,
          `the list has no item ${at}, before which the diff puts one; its length is ${length}.`,
        );
    }
    const made: unknown[] = [];
    for (const at of [...items.keys(), length, Number.POSITIVE_INFINITY]) {
      for (const change of arrivals.get(at) ?? []) {
        const moved = items[Number(change.path?.segment)] ?? 'gone';
        if (change.kind === 'insert') made.push(this.take(change.value, path));
        else if (moved !== 'gone') made.push(moved.value);
      }
      const item = items[at] ?? 'gone';
      if (stays[at] === true && item !== 'gone') made.push(item.value);
    }
    return made;
  }

  /** Reports an `actual` that differs from the old value in the diff. */
  private expect(actual: unknown, old: DiffValue, path: Path): void {
    if (!this.options.checkOld || this.matches(actual, old)) return;
    this.report(path, `expected ${this.show(old)}, from which the diff was made, got ${this.show(actual)}.`);
  }

  private matches(actual: unknown, old: DiffValue): boolean {
    if (old instanceof OldPart) {
      const node = nodeOf(actual);
      const place = this.places.get(old.path);
      return (
        node !== undefined &&
        this.resolver.node(old.path) === node &&
        (place === undefined || place.info === node.info)
      );
    }
    const expected = partsOf(old);
    const parts = partsOf(actual);
    if (expected === undefined || parts === undefined) return expected === parts && leavesMatch(actual, old);
    if (expected.length !== parts.length || Array.isArray(old) !== Array.isArray(actual)) return false;
    const found = new Map(parts.map(([segment, part]) => [formatSegment(segment, true), part]));
    return expected.every(([segment, part]) => {
      const name = formatSegment(segment, true);
      return found.has(name) && this.matches(found.get(name), part);
    });
  }

  /** A value of the diff with the configs in it: those of the base, and the added ones. */
  take(value: DiffValue, path: Path): unknown {
    return mapContainers(value, (leaf) => {
      if (leaf instanceof AddedPart) return this.options.added[leaf.index]!.proxy;
      if (!(leaf instanceof OldPart)) return leaf;
      const node = this.resolver.node(leaf.path);
      if (node === undefined) this.report(path, this.resolver.problem(leaf.path));
      return node?.proxy;
    });
  }

  private show(value: unknown): string {
    return showDiffValue(this.diff, value);
  }
}
