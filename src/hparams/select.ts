/** @file Finding configs by class, or fields by tag, anywhere below a root, and reading, setting or replacing them. */
import { isCarrier } from './carriers.js';
import { problemOf } from './check.js';
import { origin, withOrigin } from './config.js';
import { mapContainers, partsOf } from './containers.js';
import { deepCopy } from './copy.js';
import { showValue } from './describe.js';
import { writableEdges } from './edit.js';
import { ConfigError } from './errors.js';
import { FIELDS, type FieldInfo } from './fields.js';
import { nearest } from './names.js';
import {
  type ConfigNode,
  fieldOf,
  fieldTags,
  hasValue,
  type NodeKind,
  nodeOf,
  type Origin,
  originText,
  rawValue,
  readField,
  writeField,
} from './node.js';
import { requireTag, type Tag } from './tags.js';
import { edgesIn, walk } from './traverse.js';
import type { AnyConfig, AnyTarget, AsPartial, ConfigFor, NameIn } from './types.js';

/** What to select by class. */
export interface ClassQuery<X extends AnyTarget = AnyTarget, K extends NodeKind = NodeKind> {
  /** The class, or what `configurable` made of a function; without it, configs of every class. */
  readonly cls?: X;
  /** Only configs of this kind. */
  readonly kind?: K;
  /** Whether configs of subclasses count, as they do by default. */
  readonly matchSubclasses?: boolean;
  /**
   * Whether it is fine to find nothing. By default that is an error for `set` and `replace`, which would do nothing,
   * and fine for the others; false makes it an error for all.
   */
  readonly allowEmpty?: boolean;
}

/** What to select by tag. */
export interface TagQuery {
  /** Fields with this tag, or one that descends from it. */
  readonly tag: Tag;
  readonly allowEmpty?: boolean;
}

/** How to replace. */
export interface ReplaceOptions {
  /** Whether each place gets a copy of a config that is given; the default. Otherwise all of them share it. */
  readonly deepCopy?: boolean;
}

/** A new value, or a function that makes it of the old one. */
export type Replacement<C> =
  | ((old: C) => unknown)
  | object
  | string
  | number
  | boolean
  | bigint
  | null
  | undefined;

/** Configs found by class. Each use looks again: leaves first, a shared config once. */
export interface Selection<C extends AnyConfig> extends Iterable<C> {
  /** The field's value in each config. */
  get<N extends NameIn<C>>(name: N): C[N][];
  /**
   * Sets fields of every config, the root too if it was found. Gives their number.
   *
   * @throws ConfigError with all that is wrong; then nothing was set.
   */
  set(values: Partial<Pick<C, NameIn<C>>>): number;
  /**
   * Puts something else wherever a found config stands below the root: a config, another value, or what a function
   * makes of the old one, in which the inner ones are replaced already. What is put there is not searched. Gives the
   * number of configs that were replaced.
   *
   * @throws ConfigError where the root was found, which is its owner's to replace, and where a field does not accept
   * what it gets; then nothing was replaced.
   */
  replace(replacement: Replacement<C>, options?: ReplaceOptions): number;
}

/** Fields found by tag; iterating gives the values that they have, set or by default. */
export interface TagSelection extends Iterable<unknown> {
  get(): unknown[];
  /** Sets every field to one value: a config is then shared by all. Gives their number. */
  set(value: unknown): number;
  /** Sets every field to a value, or to what a function makes of the old one. Gives their number. */
  replace(replacement: unknown, options?: ReplaceOptions): number;
}

/**
 * The configs of a class below `root` (a config, or containers of configs), or the fields with a tag; sub-configs that
 * are defaults are among them. Works on a draft within `derive` as well.
 *
 *     select(model, Attention).set({ numHeads: 4 });
 *     select(model, Dropout).replace(Identity.config());
 *     select(model, { tag: ActivationDtype }).set('bfloat16');
 */
export function select<X extends AnyTarget>(root: unknown, cls: X): Selection<ConfigFor<X>>;
export function select(root: unknown, query: TagQuery): TagSelection;
export function select<X extends AnyTarget>(
  root: unknown,
  query: ClassQuery<X, 'partial'> & { kind: 'partial' },
): Selection<AsPartial<ConfigFor<X>>>;
export function select<X extends AnyTarget>(root: unknown, query: ClassQuery<X>): Selection<ConfigFor<X>>;
export function select(root: unknown, wanted: AnyTarget | ClassQuery | TagQuery): unknown {
  const query: Partial<ClassQuery & TagQuery> =
    typeof wanted === 'function' ? { cls: wanted } : (wanted as ClassQuery & TagQuery);
  const fail = (problem: string): never => {
    throw new ConfigError(`select(): ${problem}`, { place: originText(origin()) });
  };
  if (nodeOf(root) === undefined && partsOf(root) === undefined) {
    fail(`it looks into a config, or into containers of configs, got ${showValue(root)}.`);
  }
  if (typeof query !== 'object' || query === null)
    fail(`it takes a class or { cls, kind, tag }, got ${showValue(query)}.`);
  if (query.tag !== undefined) {
    if (query.cls !== undefined || query.kind !== undefined) {
      fail('a tag selects fields and a class selects configs; give one of them.');
    }
    requireTag(query.tag, 'select', undefined);
    return new FieldsByTag(root, query as TagQuery);
  }
  if (query.cls === undefined && query.kind === undefined)
    fail('what to look for? Give a class, a kind or a tag.');
  if (query.cls !== undefined && !(typeof query.cls === 'function' && FIELDS in query.cls)) {
    fail(
      `it takes a class that extends Configurable, or what configurable() made; got ${showValue(query.cls)}.`,
    );
  }
  return new ConfigsByClass(root, query);
}

class ConfigsByClass implements Selection<AnyConfig> {
  constructor(
    private readonly root: unknown,
    private readonly query: ClassQuery,
  ) {}

  *[Symbol.iterator](): Iterator<AnyConfig> {
    for (const node of this.find('iterate over', this.query.allowEmpty !== false, undefined))
      yield node.proxy;
  }

  get(name: never): never[] {
    const writer = origin();
    const found = this.find('get from', this.query.allowEmpty !== false, writer);
    return found.map((node) => readField(node, fieldOf(node, name, writer)) as never);
  }

  set(values: object): number {
    const writer = origin();
    const found = this.find('set', this.query.allowEmpty === true, writer);
    const writes = found.flatMap((node) =>
      Object.keys(values).map((name) => ({ node, name, value: (values as Record<string, unknown>)[name] })),
    );
    writeAll('select().set()', writes, writer);
    return found.length;
  }

  replace(replacement: unknown, options: ReplaceOptions = {}): number {
    const writer = origin();
    this.find('replace', this.query.allowEmpty === true, writer);
    this.refuseRoot(writer);
    const make = maker(replacement, options);
    const replaced = new Map<ConfigNode, unknown>();
    allOrNothing((write) => {
      walk(this.root, {
        children: writableEdges,
        leave: (node) => {
          if (replaced.size > 0) replaceIn(node, replaced, write);
          if (this.fits(node)) replaced.set(node, make(node.proxy));
        },
      });
    }, writer);
    return replaced.size;
  }

  private refuseRoot(writer: Origin): void {
    const match = edgesIn(this.root, undefined).find(({ node }) => this.fits(node));
    if (match === undefined) return;
    throw new ConfigError(
      `select().replace(): the root is one of the ${match.node.info.name} configs that were found, and nothing below the root holds it. ` +
        'Put the new config where the root is held, or change the root by set() or updateCallable().',
      { place: originText(writer) },
    );
  }

  private fits(node: ConfigNode): boolean {
    const { cls, kind, matchSubclasses } = this.query;
    // Whoever asks for configs of any class means those that were written, not what carries a tag.
    if (isCarrier(node) || (kind !== undefined && node.kind !== kind)) return false;
    if (cls === undefined || node.info.cls === cls) return true;
    return (
      matchSubclasses !== false &&
      node.info.cls.prototype instanceof (cls as unknown as abstract new () => object)
    );
  }

  private find(verb: string, mayBeEmpty: boolean, writer: Origin | undefined): ConfigNode[] {
    const found: ConfigNode[] = [];
    const names = new Set<string>();
    walk(this.root, {
      children: writableEdges,
      leave: (node) => {
        names.add(node.info.name);
        if (this.fits(node)) found.push(node);
      },
    });
    if (found.length > 0 || mayBeEmpty) return found;
    const { cls, kind = 'config' } = this.query;
    const what = cls === undefined ? kind : `${(cls as { name: string }).name} ${kind}`;
    throw new ConfigError(`select() found no ${what} to ${verb}.${present(names, cls)} ${acceptEmpty}`, {
      place: originText(writer ?? origin()),
    });
  }
}

const acceptEmpty = 'If that is fine, select with { allowEmpty: true }.';

/** What there is instead of the class that was looked for. */
function present(names: ReadonlySet<string>, cls: AnyTarget | undefined): string {
  const wanted = (cls as { name: string } | undefined)?.name;
  const close = wanted === undefined ? undefined : nearest(wanted, names);
  const listed = [...names].sort().slice(0, 12).join(', ');
  return close === undefined || close === wanted
    ? ` There are ${listed}.`
    : ` Did you mean ${close}? There are ${listed}.`;
}

class FieldsByTag implements TagSelection {
  constructor(
    private readonly root: unknown,
    private readonly query: TagQuery,
  ) {}

  *[Symbol.iterator](): Iterator<unknown> {
    yield* this.get();
  }

  get(): unknown[] {
    const found = this.find('get', this.query.allowEmpty !== false, origin());
    return found.flatMap(({ node, field }) => (hasValue(node, field) ? [readField(node, field)] : []));
  }

  set(value: unknown): number {
    const writer = origin();
    const found = this.find('set', this.query.allowEmpty === true, writer);
    writeAll(
      'select().set()',
      found.map(({ node, field }) => ({ node, name: field.name, value })),
      writer,
    );
    return found.length;
  }

  replace(replacement: unknown, options: ReplaceOptions = {}): number {
    const writer = origin();
    const found = this.find('replace', this.query.allowEmpty === true, writer);
    const make = maker(replacement, options);
    allOrNothing((write) => {
      for (const { node, field } of found) {
        write(node, field.name, make(hasValue(node, field) ? readField(node, field) : undefined));
      }
    }, writer);
    return found.length;
  }

  private find(verb: string, mayBeEmpty: boolean, writer: Origin): { node: ConfigNode; field: FieldInfo }[] {
    const found: { node: ConfigNode; field: FieldInfo }[] = [];
    const others = new Set<string>();
    walk(this.root, {
      children: writableEdges,
      leave: (node) => {
        for (const field of node.info.fields.values()) {
          const tags = fieldTags(node, field);
          if (tags.some((tag) => tag.isA(this.query.tag))) found.push({ node, field });
          else for (const tag of tags) others.add(String(tag));
        }
      },
    });
    if (found.length > 0 || mayBeEmpty) return found;
    const listed = others.size === 0 ? 'No field has a tag.' : `There are ${[...others].sort().join(', ')}.`;
    throw new ConfigError(
      `select() found no field tagged ${this.query.tag} to ${verb}. ${listed} ${acceptEmpty}`,
      {
        place: originText(writer),
      },
    );
  }
}

/** Checks all writes, then makes them. */
function writeAll(
  what: string,
  writes: readonly { node: ConfigNode; name: string; value: unknown }[],
  writer: Origin,
): void {
  // Many configs of one class fail alike: each problem is told once.
  const problems = new Set<string>();
  for (const { node, name, value } of writes) {
    const problem = problemOf(fieldOf(node, name, writer), value);
    if (problem !== undefined) problems.add(`${node.info.name}.${problem}`);
  }
  if (problems.size > 0) {
    const [first] = problems;
    const list = [...problems].map((problem) => `\n  ${problem}`).join('');
    const text = problems.size === 1 ? first! : `${what}: ${problems.size} problems:${list}`;
    throw new ConfigError(text, { place: originText(writer) });
  }
  allOrNothing((write) => {
    for (const { node, name, value } of writes) write(node, name, value);
  }, writer);
}

type Writer = (node: ConfigNode, name: string, value: unknown) => void;

/** Runs `action`; where it throws, the writes that it made so far are undone. */
function allOrNothing(action: (write: Writer) => void, writer: Origin): void {
  const undo: (() => void)[] = [];
  const write: Writer = (node, name, value) => {
    const { last, writes } = node;
    const before = name in node.values ? { value: node.values[name] } : undefined;
    writeField(node, name, value, writer);
    undo.push(() => {
      if (before === undefined) delete node.values[name];
      else node.values[name] = before.value;
      node.last = last;
      node.writes = writes;
    });
  };
  try {
    withOrigin(writer, () => action(write));
  } catch (error) {
    for (const step of undo.reverse()) step();
    throw error;
  }
}

/** Writes the fields of `node` that hold something that was replaced. */
function replaceIn(node: ConfigNode, replaced: ReadonlyMap<ConfigNode, unknown>, write: Writer): void {
  const session = node.draft?.session;
  const live = (held: ConfigNode): ConfigNode => (session === undefined ? held : session.draftOf(held));
  for (const field of node.info.fields.values()) {
    if (field.default.kind === 'none' && !(field.name in node.values)) continue;
    const value = rawValue(node, field);
    if (!edgesIn(value, undefined).some((edge) => replaced.has(live(edge.node)))) continue;
    const swap = (leaf: unknown): unknown => {
      const held = nodeOf(leaf);
      const key = held && live(held);
      return key !== undefined && replaced.has(key) ? replaced.get(key) : leaf;
    };
    write(node, field.name, mapContainers(value, swap));
  }
}

/** What to put in the place of an old value. */
function maker(replacement: unknown, options: ReplaceOptions): (old: unknown) => unknown {
  if (typeof replacement === 'function') return (old) => (replacement as (old: unknown) => unknown)(old);
  if (options.deepCopy === false) return () => replacement;
  return () =>
    mapContainers(replacement, (leaf) => (nodeOf(leaf) === undefined ? leaf : deepCopy(leaf as AnyConfig)));
}
