/** @file Selections of configs by class: reading, setting, replacing. */

import { nearest } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { FIELDS } from '../fields/fields.js';
import { isCarrier } from '../nodes/carriers.js';
import { mapContainers, partsOf } from '../nodes/containers.js';
import {
  type ConfigNode,
  fieldOf,
  type NodeKind,
  nodeOf,
  type Origin,
  originText,
  rawValue,
} from '../nodes/node.js';
import { readField } from '../nodes/reading.js';
import { origin } from '../nodes/record.js';
import { requireTag } from '../tags.js';
import type { AnyConfig, AnyTarget, AsPartial, ConfigFor, NameIn } from '../types.js';
import { allEdges } from '../walking/iterate.js';
import { edgesIn, walk } from '../walking/walk.js';
import { allOrNothing, maker, type ReplaceOptions, type Writer, writeAll } from './manyWrites.js';
import { acceptEmpty, FieldsByTag, type TagQuery, type TagSelection } from './tagged.js';

/** Query by class. */
interface ClassQuery<X extends AnyTarget = AnyTarget, K extends NodeKind = NodeKind> {
  /** The class or `configurable` target; without it, configs of every class. */
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

/** A new value, or a function that makes it of the old one. */
type Replacement<C> = ((old: C) => unknown) | object | string | number | boolean | bigint | null | undefined;

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
   * Replaces every found config below the root: by a config, another value, or the result of a function of the old
   * one, whose inner configs are replaced already. Replacements are not searched. Returns the number of replaced
   * configs.
   *
   * @throws ConfigError if the root was found, as only its owner can replace it, or if a field does not accept its
   * replacement; then nothing is replaced.
   */
  replace(replacement: Replacement<C>, options?: ReplaceOptions): number;
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
    fail('nothing to select by: give a class, a kind or a tag.');
  if (query.cls !== undefined && !(typeof query.cls === 'function' && FIELDS in query.cls)) {
    fail(
      `it takes a class that extends Configurable, or a configurable() target; got ${showValue(query.cls)}.`,
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
        children: allEdges,
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
    // A query for configs of any class excludes carriers of tags.
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
      children: allEdges,
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

/** Lists the classes that are present instead of the one queried. */
function present(names: ReadonlySet<string>, cls: AnyTarget | undefined): string {
  const wanted = (cls as { name: string } | undefined)?.name;
  const close = wanted === undefined ? undefined : nearest(wanted, names);
  const listed = [...names].sort().slice(0, 12).join(', ');
  return close === undefined || close === wanted
    ? ` There are ${listed}.`
    : ` Did you mean ${close}? There are ${listed}.`;
}

/** Writes the fields of `node` that hold something that was replaced. */
function replaceIn(node: ConfigNode, replaced: ReadonlyMap<ConfigNode, unknown>, write: Writer): void {
  for (const field of node.info.fields.values()) {
    if (field.default.kind === 'none' && !(field.name in node.values)) continue;
    const value = rawValue(node, field);
    if (!edgesIn(value, undefined).some((edge) => replaced.has(edge.node))) continue;
    const swap = (leaf: unknown): unknown => {
      const held = nodeOf(leaf);
      return held !== undefined && replaced.has(held) ? replaced.get(held) : leaf;
    };
    write(node, field.name, mapContainers(value, swap));
  }
}
