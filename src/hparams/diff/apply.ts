/** @file A diff applied to a config: that it was made from, or another. */

import { type DocumentProblem, problemFrom, throwProblems } from '../documents/format.js';
import { problemOf } from '../fields/check.js';
import type { FieldInfo } from '../fields/fields.js';
import { newConfig, newNode } from '../nodes/config.js';
import { getOrMake, mapContainers } from '../nodes/containers.js';
import {
  type ConfigNode,
  collectNodes,
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
import type { Tag } from '../types.js';
import { formatLink } from '../walking/paths.js';
import { type Edge, edgesIn, walk } from '../walking/walk.js';
import { type ConfigEdits, groupChanges, type ValueEdits } from './edits.js';
import { Resolver, ValueEditor } from './editValue.js';
import { isTouched, shownEdges } from './structure.js';
import type { ClassChange, Diff, PartConfig, Path, TagChange } from './types.js';

export interface ApplyOptions {
  /** Who writes, for the history: the text of a flag, say. The default is the caller's line. */
  origin?: string;
  /**
   * Whether the base must hold what the old structure held wherever something is changed. The default is true; false
   * asks only that what is changed or deleted is there, and what is set is not.
   */
  checkOld?: boolean;
}

/**
 * `base` with the changes of `diff`. The base is not touched; configs that did not change are the same objects, and what
 * is shared stays shared. The base need not be the config that the diff was made from.
 *
 * @throws ConfigError with everything that does not fit the base: paths that are not there, values other than those the
 *   diff was made from, and values that their fields do not accept.
 */
export function applyDiff<T>(diff: Diff, base: T, options: ApplyOptions = {}): T {
  return new Applier(diff, base, options.checkOld !== false, options.origin ?? currentWriter()).run() as T;
}

/** What a config of the base becomes, before the configs in it are replaced by what they become. */
interface Plan {
  /** Explicit values that stay. */
  readonly kept: Map<string, unknown>;
  /** Defaults that were handed out. */
  readonly defaults: Map<string, unknown>;
  readonly written: Map<string, unknown>;
  readonly deleted: readonly string[];
  readonly edits: ConfigEdits | undefined;
}

class Applier {
  private readonly problems: DocumentProblem[] = [];
  private readonly resolver: Resolver;
  private readonly editor: ValueEditor;
  private readonly added: readonly ConfigNode[];
  private readonly edits = new Map<ConfigNode, { edits: ConfigEdits; path: Path }>();
  private readonly plans = new Map<ConfigNode, Plan>();
  private readonly done = new Map<ConfigNode, ConfigNode>();

  constructor(
    private readonly diff: Diff,
    private readonly base: unknown,
    private readonly checkOld: boolean,
    private readonly writer: Origin,
  ) {
    const report = (path: Path, problem: string): void => this.report(path, problem);
    this.added = diff.added.map((part) => nodeOf(newConfig(part.info, part.kind))!);
    this.resolver = new Resolver(base);
    this.editor = new ValueEditor({ diff, resolver: this.resolver, added: this.added, checkOld, report });
  }

  run(): unknown {
    const { configs, root } = groupChanges(this.diff.changes);
    const misfits = this.misfitsOf(configs);
    const isMisfit = pathsInside(misfits);
    for (const [path, problem] of misfits)
      if (path === undefined || !isMisfit(path.parent)) this.report(path, problem);
    for (const [path, edits] of configs) if (!isMisfit(path)) this.locate(path, edits);
    const base = { value: this.base };
    const edited = root.isEmpty ? base : this.editor.edit(base, root, undefined);
    // Which defaults the diff refers to is known only when everything that changes was looked at.
    for (const [node, { edits, path }] of this.edits) this.plans.set(node, this.plan(node, edits, path));
    const parts = new Map(this.diff.added.map((part, i) => [this.added[i]!, part]));
    const contents = new Map([...parts].map(([node, part]) => [node, this.contentsOf(part)]));
    const value = edited === 'gone' ? undefined : edited.value;
    walk(value, {
      children: (node, path) => {
        const values = contents.get(node);
        if (values === undefined && this.isSpared(node)) return shownEdges(node, path);
        return this.childrenOf(values ?? this.valuesOf(node), path);
      },
      leave: (node, path) => {
        const values = contents.get(node);
        if (values === undefined) this.done.set(node, this.remake(node, path));
        else this.fill(node, parts.get(node)!, values, path);
      },
    });
    this.fail();
    return this.replaced(value);
  }

  /** Whether the diff says nothing of the config itself: it changes only where what it holds does. */
  private isSpared(node: ConfigNode): boolean {
    return !this.edits.has(node) && !this.resolver.defaultsMet.has(node);
  }

  private report(path: Path, problem: string): void {
    const text = formatLink(path);
    this.problems.push({ path: text, problem: `${text || '<root>'}: ${problem}`, place: undefined });
  }

  private attempt(path: Path, action: () => void): void {
    try {
      action();
    } catch (error) {
      const text = formatLink(path);
      const found = problemFrom(error, text);
      this.problems.push({
        ...found,
        problem: text === '' ? found.problem : `${text}: ${found.problem}`,
        place: undefined,
      });
    }
  }

  private fail(): void {
    const place = originText(this.writer);
    const problems =
      this.problems.length === 1 ? this.problems.map((each) => ({ ...each, place })) : this.problems;
    throwProblems(problems, 'The diff does not fit');
  }

  /** Where the base has a config of another class than the one that changes: what else does not fit there follows. */
  private misfitsOf(configs: ReadonlyMap<Path, ConfigEdits>): ReadonlyMap<Path, string> {
    const misfits = new Map<Path, string>();
    for (const [path, edits] of configs) {
      const node = this.resolver.node(path);
      const change = edits.class.find(({ old }) => this.checkOld && node !== undefined && node.info !== old);
      if (change !== undefined) misfits.set(path, misfit(change.old.name, node!.info.name));
    }
    return misfits;
  }

  /** Finds the config that changes are about. Two paths of the diff may lead to one config of another base. */
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

  private plan(node: ConfigNode, edits: ConfigEdits | undefined, path: Path): Plan {
    const kept = new Map<string, unknown>();
    const defaults = new Map<string, unknown>();
    const written = new Map<string, unknown>();
    const deleted: string[] = [];
    // A new class has defaults of its own: those of the old one go.
    const keepsDefaults = edits === undefined || edits.class.length === 0;
    const met = keepsDefaults ? this.resolver.defaultsMet.get(node) : undefined;
    for (const field of node.info.fields.values()) {
      const { name } = field;
      const change = edits?.fields.get(name);
      const explicit = isExplicit(node, name);
      if (change !== undefined) {
        const edited = this.editor.edit(this.currentOf(node, field, change), change, {
          parent: path,
          segment: name,
        });
        if (edited === 'gone') deleted.push(name);
        else written.set(name, edited.value);
      } else if (explicit || met?.has(name) === true) kept.set(name, rawValue(node, field));
      else if (keepsDefaults && isTouched(node, name)) defaults.set(name, rawValue(node, field));
    }
    for (const [name, change] of edits?.fields ?? []) {
      if (node.info.fields.has(name)) continue;
      const edited = this.editor.edit(undefined, change, { parent: path, segment: name });
      if (edited !== 'gone') written.set(name, edited.value);
    }
    return { kept, defaults, written, deleted, edits };
  }

  /** The value that a change is about: a default counts where the change is inside of it, or deletes it. */
  private currentOf(node: ConfigNode, field: FieldInfo, change: ValueEdits): { value: unknown } | undefined {
    const [whole] = change.whole;
    const counts =
      whole === undefined ? hasValue(node, field) : whole.kind === 'delete' && isTouched(node, field.name);
    return counts || isExplicit(node, field.name) ? { value: rawValue(node, field) } : undefined;
  }

  private contentsOf(part: PartConfig): Map<string, unknown> {
    const { values, path } = part;
    return new Map(
      Object.keys(values).map((name) => [
        name,
        this.editor.take(values[name], { parent: path, segment: name }),
      ]),
    );
  }

  private planOf(node: ConfigNode): Plan {
    return getOrMake(this.plans, node, () => this.plan(node, undefined, undefined));
  }

  private valuesOf(node: ConfigNode): Map<string, unknown> {
    const { kept, defaults, written } = this.planOf(node);
    return new Map([...kept, ...defaults, ...written]);
  }

  private childrenOf(values: ReadonlyMap<string, unknown>, path: Path): Edge[] {
    const edges: Edge[] = [];
    for (const [name, value] of values) edgesIn(value, { parent: path, segment: name }, edges);
    return edges;
  }

  /** A value with every config in it replaced by what it becomes. */
  private replaced(value: unknown): unknown {
    return mapContainers(value, (leaf) => {
      const node = nodeOf(leaf);
      return node === undefined ? leaf : (this.done.get(node) ?? node).proxy;
    });
  }

  private holdsReplaced(node: ConfigNode): boolean {
    for (const field of node.info.allFields) {
      if (isTouched(node, field.name) && this.isReplaced(rawValue(node, field))) return true;
    }
    return false;
  }

  private isReplaced(value: unknown): boolean {
    if (typeof value !== 'object' || value === null) return false;
    const nodes: ConfigNode[] = [];
    collectNodes(value, nodes);
    return nodes.some((node) => (this.done.get(node) ?? node) !== node);
  }

  private fill(node: ConfigNode, part: PartConfig, values: ReadonlyMap<string, unknown>, path: Path): void {
    for (const [name, value] of values) {
      this.attempt(path, () => writeField(node, name, this.replaced(value), this.writer));
    }
    this.retag(
      node,
      part.tags.map(({ field, tag, present }) => ({ field, tag, kind: present ? 'addTag' : 'removeTag' })),
      path,
    );
  }

  /** What a config of the base becomes: itself, where nothing in it changed. */
  private remake(node: ConfigNode, path: Path): ConfigNode {
    if (this.isSpared(node) && !this.holdsReplaced(node)) return node;
    const { kept, defaults, written, deleted, edits } = this.planOf(node);
    const made = newNode(node.info, edits?.kind[0]?.value ?? node.kind);
    made.tags = node.tags;
    made.last = node.last;
    made.writes = node.writes;
    for (const [name, value] of kept) made.values[name] = this.replaced(value);
    for (const [name, value] of defaults)
      if (this.isReplaced(value)) made.values[name] = this.replaced(value);
    const [kind] = edits?.kind ?? [];
    if (kind !== undefined && this.checkOld && node.kind !== kind.old) {
      this.report(path, misfit(kind.old, node.kind));
    }
    for (const name of deleted) this.attempt(path, () => deleteField(made, name, this.writer));
    for (const change of edits?.class ?? []) this.reclass(made, change, path);
    this.recheck(made, node, kept, path);
    if (edits !== undefined) this.retag(made, edits.tags, path);
    for (const [name, value] of written) {
      this.attempt(path, () => writeField(made, name, this.replaced(value), this.writer));
    }
    return made;
  }

  private reclass(made: ConfigNode, change: ClassChange, path: Path): void {
    for (const name of Object.keys(made.values)) {
      if (change.value.fields.has(name)) continue;
      this.report(
        path,
        `a ${change.value.name}, which the diff makes of it, has no '${name}', which is set.`,
      );
      delete made.values[name];
    }
    setClass(made, change.value, this.writer);
  }

  /** Values that stay must fit the field of a new class, and a field must take what its config became. */
  private recheck(made: ConfigNode, node: ConfigNode, kept: ReadonlyMap<string, unknown>, path: Path): void {
    for (const name of kept.keys()) {
      const field = made.info.fields.get(name);
      if (field === undefined || !(name in made.values)) continue;
      if (made.info === node.info && !this.isReplaced(kept.get(name))) continue;
      const problem = problemOf(field, made.values[name]);
      if (problem !== undefined) this.report(path, problem);
    }
  }

  private retag(node: ConfigNode, changes: readonly FieldTag[], path: Path): void {
    const wanted = new Map<FieldInfo, Set<Tag>>();
    for (const { field: name, tag, kind } of changes) {
      const at: Path = { parent: path, segment: name };
      const field = node.info.fields.get(name);
      if (field === undefined) {
        this.report(at, `a ${node.info.name} has no '${name}'.`);
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

function misfit(expected: string, actual: string): string {
  return `expected a ${expected}, from which the diff was made, got a ${actual}.`;
}

/** Tells whether a path is one of `outer` or leads into one; each step of the paths asked for is looked at once. */
function pathsInside(outer: ReadonlyMap<Path, unknown>): (path: Path) => boolean {
  const known = new Map<Path, boolean>([[undefined, outer.has(undefined)]]);
  return (path) => {
    const open: Path[] = [];
    let at = path;
    for (; !known.has(at); at = at!.parent) open.push(at);
    let inside = known.get(at)!;
    for (const link of open.reverse()) known.set(link, (inside ||= outer.has(link)));
    return inside;
  };
}

interface FieldTag {
  readonly field: string;
  readonly tag: Tag;
  readonly kind: TagChange['kind'];
}
