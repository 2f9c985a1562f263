/** @file What a config is inside: its class, its explicit values, its tags and the writes that led there. */
import type { ClassInfo } from '../fields/fields.js';
import type { Trace } from '../source.js';
import type { AnyConfig } from '../types.js';
import type { TagChanges } from './nodeTags.js';

/** Key under which a config hands out its node; nothing outside this folder has it. */
export const NODE: unique symbol = Symbol('luthier.node');

/** What a config builds: an instance, a factory, or an instance anew for each call of the factory around it. */
export type NodeKind = 'config' | 'partial' | 'argFactory';

/** Who wrote a value: a place in the code, formatted when it is asked for, or the text of a flag. */
export type Origin = Trace | string;

/** What a write did: `edit` changed the inside of a container, `tags` a field's tags, `class` the config's class. */
export type WriteKind = 'set' | 'delete' | 'edit' | 'tags' | 'class';

/** One write. Entries are linked newest first, so that a copy of a config shares its past. */
export interface Write {
  readonly sequence: number;
  readonly field: string;
  readonly kind: WriteKind;
  readonly value: unknown;
  readonly origin: Origin;
  readonly previous: Write | undefined;
}

/** What makes a node a draft within one `derive`. */
export interface Draft {
  /** What it is a draft of. A config that the recipe itself made is its own draft. */
  readonly base: ConfigNode;
  readonly session: DraftSession;
  /** Fields whose defaults were brought back: those that the base handed out do not count any more. */
  forgotten?: Set<string>;
}

/** One run of a recipe. */
export interface DraftSession {
  readonly closed: boolean;
  /** The one draft that stands for a node. */
  draftOf(node: ConfigNode): ConfigNode;
  /** Whether a config was made by the recipe itself. */
  isNew(node: ConfigNode): boolean;
  /** Gives a draft values of its own to write to, when they are first needed. */
  own(draft: ConfigNode): void;
}

/** The default configs that were handed out, by field; derived configs share them with their originals. */
export class Defaults extends Map<string, AnyConfig> {
  /** The config that they were made for; null where it is one of several. */
  readonly owner: ConfigNode | null;

  constructor(owner: ConfigNode | null, defaults: Iterable<readonly [string, AnyConfig]> = []) {
    super(defaults);
    this.owner = owner;
  }
}

/**
 * Makes records of values: without inherited names, as `Object.create(null)` does, but with the layout of a class, which
 * takes half the time and memory.
 */
const Values = function Values() {} as unknown as new () => Record<string, unknown>;
Values.prototype = Object.create(null);

let created = 0;

/** The target of a config's proxy. */
export class ConfigNode {
  /** Explicit values by field. */
  values: Record<string, unknown>;
  /** Default configs that were handed out: edited in place they stay, but they are never stored as values. */
  defaults: Map<string, AnyConfig> | undefined;
  /** Default arrays, records and objects that were handed out; the first edit makes them explicit. */
  containers: Map<string, unknown> | undefined;
  /** How fields' tags differ from the declared ones. */
  tags: TagChanges | undefined;
  last: Write | undefined;
  writes = 0;
  /** How many writes a default config had when it was made: more mean that it was edited. -1: not a default. */
  writesAtBirth = -1;
  /** How many defaults of defaults lead here from a config that someone wrote. */
  defaultDepth = 0;
  /** Whose default it is, or was: null where that is not known, undefined for configs that someone wrote. */
  defaultOf: ConfigNode | null | undefined = undefined;
  readonly serial = ++created;
  /** The class that it was made with, and checked with where it was put: `info` may have changed since. */
  readonly madeAs: ClassInfo;
  draft: Draft | undefined;
  proxy!: AnyConfig;

  constructor(
    public info: ClassInfo,
    readonly kind: NodeKind,
    values: Record<string, unknown> = new Values(),
  ) {
    this.values = values;
    this.madeAs = info;
  }

  /** How many nodes were made so far. */
  static get count(): number {
    return created;
  }
}

/** The node of a config, or undefined for anything else. */
export function nodeOf(value: unknown): ConfigNode | undefined {
  return typeof value === 'object' && value !== null ? (value as { [NODE]?: ConfigNode })[NODE] : undefined;
}

/** What a config that `node` holds is to those who go through `node`: what a draft holds are drafts. */
export function seenFrom(node: ConfigNode, held: ConfigNode): ConfigNode {
  const { draft } = node;
  if (draft === undefined || held.draft?.session === draft.session) return held;
  // A derive within a recipe goes through the drafts of that recipe.
  const isOwn = draft.base === node || draft.session.isNew(held);
  return draft.session.draftOf(isOwn ? held : seenFrom(draft.base, held));
}

/** What a leaf of a node's value is to those who read it through that node. */
export function present(node: ConfigNode, leaf: unknown): unknown {
  const held = node.draft && nodeOf(leaf);
  return held === undefined ? leaf : seenFrom(node, held).proxy;
}
