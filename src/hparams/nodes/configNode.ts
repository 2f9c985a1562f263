/** @file State of a config: class, explicit values, tags, and the writes that led there. */
import type { ClassInfo } from '../fields/fields.js';
import type { Trace } from '../source.js';
import type { AnyConfig, TagChanges } from '../types.js';

/** Key under which a config gives its node; only this folder has it. */
export const NODE: unique symbol = Symbol('luthier.node');

/** Result of a config: an instance, a factory, or a new instance for each call of the surrounding factory. */
export type NodeKind = 'config' | 'partial' | 'argFactory';

/** Origin of a write: a place in the code, formatted on first use, or the text of a flag. */
export type Origin = Trace | string;

/** Kind of a write: `edit` changed the inside of a container, `tags` a field's tags, `class` the config's class. */
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

/**
 * Makes records of values: without inherited names, as `Object.create(null)` does, but with the layout of a class, which
 * takes half the time and memory.
 */
const Values = function Values() {} as unknown as new () => Record<string, unknown>;
Values.prototype = Object.create(null);

let created = 0;
let mostCreated = Number.POSITIVE_INFINITY;

/** More configs were made than may be. */
export class TooManyConfigs extends Error {}

/** Has the config that comes after `most` more throw TooManyConfigs, once, until the returned function is called. */
export function limitCreated(most: number): () => void {
  mostCreated = created + most;
  return () => {
    mostCreated = Number.POSITIVE_INFINITY;
  };
}

/** The target of a config's proxy. */
export class ConfigNode {
  private readonly ownValues: Record<string, unknown> = new Values();
  /** Gives a copy its values when they are first asked for. */
  fill: ((copy: ConfigNode) => void) | undefined;
  /**
   * Defaults that were handed out, by field: they can be edited in place. A config that was is explicit from then on, and
   * stays here; a container moves to the values.
   */
  defaults: Map<string, unknown> | undefined;
  /** How fields' tags differ from the declared ones. */
  tags: TagChanges | undefined;
  last: Write | undefined;
  writes = 0;
  /** How many writes a default config had when it was made: more mean that it was edited. -1: not a default. */
  writesAtBirth = -1;
  /** How many defaults of defaults lead here from a config that someone wrote. */
  defaultDepth = 0;
  /** Whether it, or its original, once had another class: it may not fit its field. */
  changedClass = false;
  serial = ++created;
  /** The config that users see. */
  readonly proxy: AnyConfig;

  /** @param handler of the proxy: copies have that of their original. */
  constructor(
    public info: ClassInfo,
    public kind: NodeKind,
    readonly handler: ProxyHandler<ConfigNode>,
  ) {
    if (created > mostCreated) {
      // The reporter of the error may make more.
      mostCreated = Number.POSITIVE_INFINITY;
      throw new TooManyConfigs();
    }
    this.proxy = new Proxy(this, handler) as unknown as AnyConfig;
  }

  /** Explicit values by field. */
  get values(): Record<string, unknown> {
    if (this.fill !== undefined) {
      const { fill } = this;
      this.fill = undefined;
      fill(this);
    }
    return this.ownValues;
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
