/** @file Diffs as JSON: a config document, in which the configs that a diff names are configs that name them. */
import { z } from 'zod';
import { Configurable } from '../configurable.js';
import { type JsonDocument, notifier, type ReadOptions } from '../documents/format.js';
import { fromJSON, toJSON } from '../documents/json.js';
import { findClass } from '../documents/registered.js';
import { ConfigError } from '../errors.js';
import { type ClassInfo, infoOf } from '../fields/fields.js';
import { mapContainers } from '../nodes/containers.js';
import { type NodeKind, nodeOf } from '../nodes/node.js';
import { findTag } from '../tags.js';
import type { AnyConfig } from '../types.js';
import type { Segment } from '../walking/paths.js';
import {
  AddedPart,
  type Change,
  type Diff,
  OldPart,
  type PartConfig,
  type Path,
  PathTable,
} from './types.js';

const format = 'luthier-diff';
const version = 1;

/** What `diffToJSON` makes. */
export interface DiffDocument {
  format: typeof format;
  version: number;
  diff: JsonDocument;
}

// Names that no class of a program can have: its own are looked up beside these.
class OldMark extends Configurable.with({ at: z.int().nonnegative() }) {}
class AddedMark extends Configurable.with({ at: z.int().nonnegative() }) {}
Object.defineProperty(OldMark, 'name', { value: 'diff:old' });
Object.defineProperty(AddedMark, 'name', { value: 'diff:added' });

const count = z.int().nonnegative();
const kind = z.enum(['config', 'partial', 'argFactory']);
const at = { path: count };
const list = { ...at, length: count };
const before = z.union([count, z.literal('end')]);
const changeForm = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('set'), ...at, value: z.unknown() }),
  z.object({ kind: z.literal('modify'), ...at, old: z.unknown(), value: z.unknown() }),
  z.object({ kind: z.literal('delete'), ...at, old: z.unknown() }),
  z.object({ kind: z.literal('insert'), ...list, before, value: z.unknown() }),
  z.object({ kind: z.literal('remove'), ...list, old: z.unknown() }),
  z.object({ kind: z.literal('move'), ...list, before, old: z.unknown() }),
  z.object({ kind: z.literal('class'), ...at, old: z.string(), value: z.string() }),
  z.object({ kind: z.literal('kind'), ...at, old: kind, value: kind }),
  z.object({ kind: z.enum(['addTag', 'removeTag']), ...at, tag: z.string() }),
]);
const partForm = z.object({
  ...at,
  class: z.string(),
  kind,
  values: z.record(z.string(), z.unknown()),
  tags: z.array(z.object({ field: z.string(), tag: z.string(), present: z.boolean() })),
});
const diffForm = z.object({
  /** Each path is a step behind an earlier one; 0 is the root. */
  paths: z.array(z.tuple([count, z.union([z.string(), z.int(), z.object({ key: z.string() })])])),
  changes: z.array(changeForm),
  added: z.array(partForm),
  removed: z.array(partForm),
  places: z.array(z.object({ ...at, class: z.string(), kind, newPath: count.optional() })),
});
type DiffForm = z.output<typeof diffForm>;

/** `diff` as data for `JSON.stringify`. @throws ConfigError for values that have no JSON form. */
export function diffToJSON(diff: Diff): DiffDocument {
  const paths: DiffForm['paths'] = [];
  const table = new PathTable();
  const numbers = new Map<Path, number>([[undefined, 0]]);
  const numberOf = (path: Path): number => {
    const open: NonNullable<Path>[] = [];
    let link = table.intern(path);
    for (; link !== undefined && !numbers.has(link); link = link.parent) open.push(link);
    let number = numbers.get(link)!;
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      number = paths.push([number, next.segment]);
      numbers.set(next, number);
    }
    return number;
  };
  const old = new Map<number, AnyConfig>();
  const added = diff.added.map((_, i) => AddedMark.config({ at: i }) as AnyConfig);
  const value = (given: unknown): unknown =>
    mapContainers(given, (leaf) => {
      if (leaf instanceof AddedPart) return added[leaf.index];
      if (!(leaf instanceof OldPart)) return leaf;
      const number = numberOf(leaf.path);
      let mark = old.get(number);
      if (mark === undefined) old.set(number, (mark = OldMark.config({ at: number }) as AnyConfig));
      return mark;
    });
  const change = (each: Change): unknown => {
    const made: Record<string, unknown> = { ...each, path: numberOf(each.path) };
    if (each.kind === 'class') return { ...made, old: each.old.name, value: each.value.name };
    if (each.kind === 'addTag' || each.kind === 'removeTag') return { ...made, tag: each.tag.name };
    if ('old' in each) made.old = value(each.old);
    if ('value' in each) made.value = value(each.value);
    return made;
  };
  const part = ({ path, info, kind: own, values, tags }: PartConfig): unknown => ({
    path: numberOf(path),
    class: info.name,
    kind: own,
    values: value(values),
    tags: tags.map(({ field, tag, present }) => ({ field, tag: tag.name, present })),
  });
  const form = {
    changes: diff.changes.map(change),
    added: diff.added.map(part),
    removed: diff.removed.map(part),
    places: diff.places.map(({ path, info, kind: own, newPath }) => ({
      path: numberOf(path),
      class: info.name,
      kind: own,
      ...(newPath && { newPath: numberOf(newPath.path) }),
    })),
    paths,
  };
  return { format, version, diff: toJSON(form) };
}

/**
 * The diff of a document that `diffToJSON` made, or of its text. Classes and tags are found by their names, as in
 * `fromJSON`; values are checked when the diff is applied.
 *
 * @throws ConfigError for a document that is broken, of a newer version, or names unknown classes or tags.
 */
export function diffFromJSON(document: DiffDocument | string, options: ReadOptions = {}): Diff {
  const outer = parse(document);
  if (typeof outer !== 'object' || outer === null || (outer as DiffDocument).format !== format) {
    throw new ConfigError(`This is not a diff: it has no "format": "${format}".`);
  }
  if ((outer as DiffDocument).version !== version) {
    throw new ConfigError(
      `The diff has version ${String((outer as DiffDocument).version)}; this program reads version ${version}.`,
    );
  }
  const classes = [OldMark, AddedMark];
  const content = fromJSON((outer as DiffDocument).diff, {
    ...options,
    classes: [...(options.classes ?? []), ...classes],
  });
  const parsed = diffForm.safeParse(content);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new ConfigError(`The diff is broken at ${issue!.path.join('.') || 'its root'}: ${issue!.message}`, {
      cause: parsed.error,
    });
  }
  return new DiffReader(parsed.data, options).read();
}

function parse(document: DiffDocument | string): unknown {
  if (typeof document !== 'string') return document;
  try {
    return JSON.parse(document);
  } catch (error) {
    throw new ConfigError(`This is not JSON: ${(error as Error).message}`, { cause: error });
  }
}

class DiffReader {
  private readonly table = new PathTable();
  private readonly paths: Path[] = [undefined];
  private readonly infos = new Map<string, ClassInfo>();

  constructor(
    private readonly form: DiffForm,
    private readonly options: ReadOptions,
  ) {}

  read(): Diff {
    const { form } = this;
    for (const [parent, segment] of form.paths)
      this.paths.push(this.table.step(this.path(parent), segment as Segment));
    return {
      changes: form.changes.map((change) => this.change(change)),
      added: form.added.map((part) => this.part(part)),
      removed: form.removed.map((part) => this.part(part)),
      places: form.places.map((place) => ({
        path: this.path(place.path),
        info: this.info(place.class),
        kind: place.kind,
        ...(place.newPath === undefined ? {} : { newPath: { path: this.path(place.newPath) } }),
      })),
    };
  }

  private path(number: number): Path {
    if (number < this.paths.length) return this.paths[number];
    throw new ConfigError(`The diff is broken: it has no path ${number}.`);
  }

  private info(name: string): ClassInfo {
    let info = this.infos.get(name);
    if (info === undefined) {
      const cls = findClass(name, this.options.classes ?? [], notifier(this.options));
      this.infos.set(name, (info = infoOf(cls)));
    }
    return info;
  }

  private change(form: DiffForm['changes'][number]): Change {
    const path = this.path(form.path);
    switch (form.kind) {
      case 'class':
        return { kind: 'class', path, old: this.info(form.old), value: this.info(form.value) };
      case 'kind':
        return { kind: 'kind', path, old: form.old as NodeKind, value: form.value as NodeKind };
      case 'addTag':
      case 'removeTag':
        return { kind: form.kind, path, tag: findTag(form.tag) };
      case 'set':
        return { kind: 'set', path, value: this.value(form.value) };
      case 'delete':
        return { kind: 'delete', path, old: this.value(form.old) };
      case 'modify':
        return { kind: 'modify', path, old: this.value(form.old), value: this.value(form.value) };
      case 'insert':
        return {
          kind: 'insert',
          path,
          before: form.before,
          value: this.value(form.value),
          length: form.length,
        };
      case 'remove':
        return { kind: 'remove', path: this.item(path), old: this.value(form.old), length: form.length };
      case 'move':
        return {
          kind: 'move',
          path: this.item(path),
          before: form.before,
          old: this.value(form.old),
          length: form.length,
        };
    }
  }

  private item(path: Path): Path {
    if (typeof path?.segment === 'number') return path;
    throw new ConfigError('The diff is broken: an item of a list has no index.');
  }

  private part(form: DiffForm['added'][number]): PartConfig {
    const tags = form.tags.map(({ field, tag, present }) => ({ field, tag: findTag(tag), present }));
    const values = this.value(form.values) as Record<string, unknown>;
    return { path: this.path(form.path), info: this.info(form.class), kind: form.kind, values, tags };
  }

  private value(value: unknown): unknown {
    return mapContainers(value, (leaf) => {
      const node = nodeOf(leaf);
      if (node === undefined) return leaf;
      const number = node.values.at as number;
      if (node.info.cls === OldMark) return new OldPart(this.path(number));
      if (node.info.cls === AddedMark && number < this.form.added.length) return new AddedPart(number);
      throw new ConfigError(`The diff is broken: ${node.info.name} ${number} stands in a value.`);
    });
  }
}
