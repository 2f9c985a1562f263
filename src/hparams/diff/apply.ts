/** @file Application of a diff to its old structure, or to another config. */

import { type DocumentProblem, problemFrom, throwProblems } from '../documents/document.js';
import { EditedCopy } from '../editing/derive.js';
import { problemOf } from '../fields/check.js';
import { withArticle } from '../fields/describe.js';
import type { ClassInfo, FieldInfo } from '../fields/fields.js';
import { isCarrier } from '../nodes/carriers.js';
import { newConfig } from '../nodes/config.js';
import { getOrMake } from '../nodes/containers.js';
import { explicitValue, nodesIn } from '../nodes/held.js';
import {
  type ConfigNode,
  deleteField,
  fieldTags,
  hasValue,
  isExplicit,
  nodeOf,
  type Origin,
  originText,
  rawValue,
  setClass,
  writeField,
  writeTags,
} from '../nodes/node.js';
import { origin as currentWriter } from '../nodes/record.js';
import { ClassLabels } from '../printing/items.js';
import type { Tag } from '../types.js';
import { formatLink } from '../walking/paths.js';
import { walk } from '../walking/walk.js';
import type { ClassChange, Diff, PartConfig, Path } from './changes.js';
import { type Edited, Resolver, ValueEditor } from './editValue.js';
import { type ConfigEdits, groupChanges, type TagEdit, type ValueEdits } from './groupChanges.js';

interface ApplyOptions {
  /** Origin recorded in the history, such as the text of a flag; by default, the caller's line. */
  origin?: string;
  /**
   * Whether the base must match the old structure at each change; true by default. With false, changed or deleted
   * values must only exist, and set ones must not.
   */
  checkOld?: boolean;
}

/**
 * Applies `diff` to `base`, which stays as it is. Unchanged configs are the same objects in the result, and sharing is
 * kept. The base need not be the config that the diff was made from.
 *
 * @throws ConfigError with all mismatches: missing paths, old values other than the diff's, and new values that their
 *   fields reject.
 */
export function applyDiff<T>(diff: Diff, base: T, options: ApplyOptions = {}): T {
  return new Applier(diff, base, options.checkOld !== false, options.origin ?? currentWriter()).run() as T;
}

/** A config of the draft to edit, with the new values of its fields. */
interface Located {
  readonly node: ConfigNode;
  readonly path: Path;
  readonly edits: ConfigEdits;
  readonly fields: ReadonlyMap<string, Edited>;
}

class Applier {
  private readonly problems: DocumentProblem[] = [];
  private readonly report = (path: Path, problem: string): void => {
    const text = formatLink(path);
    this.problems.push({ path: text, problem: `${text || '<root>'}: ${problem}`, place: undefined });
  };
  private readonly copy: EditedCopy<unknown>;
  private readonly resolver: Resolver;
  private readonly editor: ValueEditor;
  private readonly added: readonly ConfigNode[];
  private readonly edits = new Map<ConfigNode, { edits: ConfigEdits; path: Path }>();

  constructor(
    private readonly diff: Diff,
    base: unknown,
    private readonly checkOld: boolean,
    private readonly writer: Origin,
  ) {
    this.copy = new EditedCopy(base);
    this.added = diff.added.map((part) => nodeOf(newConfig(part.info, part.kind))!);
    this.resolver = new Resolver(this.copy.draft);
    const { resolver, added, report } = this;
    this.editor = new ValueEditor({ diff, resolver, added, checkOld, report });
  }

  run(): unknown {
    const value = this.apply();
    this.fail();
    return this.copy.settle(value);
  }

  /** Edits the draft; reads everything before writing anything. */
  private apply(): unknown {
    const { configs, root } = groupChanges(this.diff.changes);
    const misfits = this.misfitsOf(configs);
    for (const [path, problem] of misfits)
      if (path === undefined || !isInside(path.parent, misfits)) this.report(path, problem);
    for (const [path, edits] of configs)
      if (misfits.size === 0 || !isInside(path, misfits)) this.locate(path, edits);
    const base = { value: this.copy.draft };
    const edited = root.isEmpty ? base : this.editor.edit(base, root, undefined);
    const edits = [...this.edits].map(([node, { edits: own, path }]): Located => {
      return { node, path, edits: own, fields: this.fieldsOf(node, own, path) };
    });
    const contents = this.diff.added.map((part) => this.contentsOf(part));
    // Classes change first, since configs may also be put elsewhere.
    for (const each of edits) this.convert(each);
    const fills = this.diff.added.map((part, i) => {
      const node = this.added[i]!;
      return { node, run: () => this.fill(node, part, contents[i]!) };
    });
    const writes = edits.map((each) => ({ node: each.node, run: () => this.write(each) }));
    // Carriers are copied when written to, so they come before all others, inner ones first.
    const isCarried = ({ node }: { node: ConfigNode }): boolean => isCarrier(node);
    const carriers = [...fills.filter(isCarried).reverse(), ...writes.filter(isCarried).reverse()];
    const others = [...fills, ...writes].filter((each) => !isCarried(each));
    for (const { run } of [...carriers, ...others]) run();
    const value = edited === 'gone' ? undefined : edited.value;
    this.recheckHolders(value);
    return value;
  }

  private attempt(path: Path, action: () => void): void {
    try {
      action();
    } catch (error) {
      const text = formatLink(path);
      const found = problemFrom(error, text);
      const problem = text === '' ? found.problem : `${text}: ${found.problem}`;
      this.problems.push({ ...found, problem, place: undefined });
    }
  }

  private fail(): void {
    const place = originText(this.writer);
    const problems =
      this.problems.length === 1 ? this.problems.map((each) => ({ ...each, place })) : this.problems;
    throwProblems(problems, 'The diff does not fit');
  }

  /** Configs whose class is not the one that the diff changes; other mismatches inside of them are consequences. */
  private misfitsOf(configs: ReadonlyMap<Path, ConfigEdits>): ReadonlyMap<Path, string> {
    const misfits = new Map<Path, string>();
    for (const [path, edits] of configs) {
      const node = this.resolver.node(path);
      const change = edits.class.find(({ old }) => this.checkOld && node !== undefined && node.info !== old);
      if (change !== undefined) misfits.set(path, misfit(change.old, node!.info));
    }
    return misfits;
  }

  /** Finds the config of a group of edits. In another base, two paths of the diff may lead to one config. */
  private locate(path: Path, edits: ConfigEdits): void {
    const node = this.resolver.node(path);
    const known = node && this.edits.get(node);
    if (node === undefined) this.report(path, this.resolver.problem(path));
    else if (known === undefined) this.edits.set(node, { edits, path });
    else if (!known.edits.merge(edits)) {
      this.report(
        path,
        `it is the same config as ${formatLink(known.path) || 'the root'}; the diff changes both.`,
      );
    }
  }

  /** New values of the fields that change. */
  private fieldsOf(node: ConfigNode, edits: ConfigEdits, path: Path): Map<string, Edited> {
    const fields = new Map<string, Edited>();
    for (const [name, change] of edits.fields) {
      const field = node.info.fields.get(name);
      const current = field && this.currentOf(node, field, change);
      fields.set(name, this.editor.edit(current, change, { parent: path, segment: name }));
    }
    return fields;
  }

  /** The value that a change edits. A default counts if the change is inside of it, or deletes it. */
  private currentOf(node: ConfigNode, field: FieldInfo, change: ValueEdits): { value: unknown } | undefined {
    const [whole] = change.whole;
    const counts = (whole === undefined || whole.kind === 'delete') && hasValue(node, field);
    return counts || isExplicit(node, field.name) ? { value: rawValue(node, field) } : undefined;
  }

  private contentsOf({ values, path }: PartConfig): Map<string, unknown> {
    const take = (name: string) => this.editor.take(values[name], { parent: path, segment: name });
    return new Map(Object.keys(values).map((name) => [name, take(name)]));
  }

  private fill(node: ConfigNode, part: PartConfig, values: ReadonlyMap<string, unknown>): void {
    const { path } = part;
    for (const [name, value] of values) this.attempt(path, () => writeField(node, name, value, this.writer));
    this.retag(
      node,
      part.tags.map(({ field, tag, present }) => ({ field, tag, kind: present ? 'addTag' : 'removeTag' })),
      path,
    );
  }

  /** Changes a config's kind and class, after deleting fields. */
  private convert({ node, edits, fields, path }: Located): void {
    for (const { old, value } of edits.kind) {
      if (this.checkOld && node.kind !== old) this.report(path, misfitText(old, node.kind));
      node.kind = value;
    }
    for (const [name, edited] of fields)
      if (edited === 'gone' && node.info.fields.has(name))
        this.attempt(path, () => deleteField(node, name, this.writer));
    for (const change of edits.class) this.reclass(node, change, path);
  }

  private write({ node, edits, fields, path }: Located): void {
    this.retag(node, edits.tags, path);
    for (const [name, edited] of fields)
      if (edited !== 'gone') this.attempt(path, () => writeField(node, name, edited.value, this.writer));
  }

  private reclass(node: ConfigNode, change: ClassChange, path: Path): void {
    for (const name of Object.keys(node.values)) {
      const field = change.value.fields.get(name);
      const problem = field && problemOf(field, node.values[name]);
      if (problem !== undefined) this.report(path, problem);
      if (field !== undefined) continue;
      this.report(
        path,
        `${withArticle(change.value.name)}, the diff's new kind, has no '${name}', which is set.`,
      );
      delete node.values[name];
    }
    setClass(node, change.value, this.writer);
  }

  /** Checks fields that hold configs whose class or kind has changed. */
  private recheckHolders(value: unknown): void {
    const changed = new Set<ConfigNode>();
    for (const [node, { edits }] of this.edits)
      if (edits.class.length + edits.kind.length > 0) changed.add(node);
    if (changed.size === 0) return;
    walk(value, {
      leave: (node, path) => {
        for (const field of node.info.allFields) {
          const held = explicitValue(node, field);
          if (!nodesIn(held).some((each) => changed.has(each))) continue;
          const problem = problemOf(field, held);
          if (problem !== undefined) this.report(path, problem);
        }
      },
    });
  }

  private retag(node: ConfigNode, changes: readonly TagEdit[], path: Path): void {
    const wanted = new Map<FieldInfo, Set<Tag>>();
    for (const { field: name, tag, kind } of changes) {
      const at: Path = { parent: path, segment: name };
      const field = node.info.fields.get(name);
      if (field === undefined) {
        this.report(at, `${withArticle(node.info.name)} has no '${name}'.`);
        continue;
      }
      const tags = getOrMake(wanted, field, () => new Set(fieldTags(node, field)));
      if (tags.has(tag) === (kind === 'addTag')) {
        this.report(at, `it ${kind === 'addTag' ? 'has the tag' : 'lacks the tag'} ${tag} already.`);
      }
      if (kind === 'addTag') tags.add(tag);
      else tags.delete(tag);
    }
    for (const [field, tags] of wanted) writeTags(node, field, tags, this.writer);
  }
}

function misfit(expected: ClassInfo, actual: ClassInfo): string {
  const labels = new ClassLabels(() => [expected, actual]);
  return misfitText(labels.of(expected), labels.of(actual));
}

function misfitText(expected: string, actual: string): string {
  return `expected ${withArticle(expected)}, from which the diff was made, got ${withArticle(actual)}.`;
}

/** Whether a path is one of `outer` or leads into one. */
function isInside(path: Path, outer: ReadonlyMap<Path, unknown>): boolean {
  let at = path;
  while (at !== undefined && !outer.has(at)) at = at.parent;
  return outer.has(at);
}
