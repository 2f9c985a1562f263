/** @file Declarations of configurable classes, analysed once a class. */
import type { z } from 'zod';

import type { AbstractClass, AnyConfig, Fields, Tag } from '../types.js';
import { concreteClasses, isAbstract, registerClass } from './classNames.js';
import { OLD_NAMES, type OldNames } from './renamed.js';
import {
  accepts,
  definitionOf,
  type Holder,
  holderOf,
  holdersIn,
  holdsUnknown,
  keepsValues,
  markedTags,
  mayHaveParts,
  sortTags,
} from './schema.js';

/** Key of the static property that holds a class's hyperparameters, those of its bases included. */
export const FIELDS: unique symbol = Symbol('luthier.fields');
/** Key of the static function that builds an instance of the class (or calls the function). */
export const MAKE: unique symbol = Symbol('luthier.make');

/** How a field gets its value where none was set. */
type Default =
  | { readonly kind: 'none' }
  /** `parsed` is set if the value still goes through the schema, as zod's prefault does. */
  | { readonly kind: 'value'; readonly make: () => unknown; readonly parsed: boolean }
  | { readonly kind: 'config'; readonly make: () => AnyConfig };

/** Key of the static property that marks the class of carriers, the values with tags in containers. */
export const CARRIER: unique symbol = Symbol('luthier.carrier');

/** Whether `cls` is the class of carriers. */
export function isCarrierClass(cls: AbstractClass): boolean {
  return CARRIER in cls;
}

/** One hyperparameter of a class. */
export interface FieldInfo {
  readonly name: string;
  readonly schema: z.ZodType;
  /** Schema of written values: without its default, as undefined is not a value. */
  readonly check: z.ZodType;
  readonly default: Default;
  /** Set where the field holds one config (or null, or undefined). */
  readonly holder: Holder | undefined;
  /** The holders anywhere in the schema. */
  readonly holders: readonly Holder[];
  /** Whether `build` has anything to build in the value. */
  readonly holdsBuilt: boolean;
  /** Whether every config in the value is built, so that none is left to check. */
  readonly buildsAll: boolean;
  /** Whether the schema returns checked values unchanged, apart from building configs in them. */
  readonly keepsValues: boolean;
  readonly description: string | undefined;
  /** The tags that its declaration gives it, sorted by name. */
  readonly tags: readonly Tag[];
}

/** The hyperparameters of a class, or of a function that `configurable` made a target of configs. */
export interface ClassInfo {
  readonly name: string;
  readonly cls: AbstractClass;
  /** Whether it is there to be extended only. */
  readonly isAbstract: boolean;
  readonly fields: ReadonlyMap<string, FieldInfo>;
  /** The present names of fields by their old ones. */
  readonly oldNames: OldNames;
  readonly allFields: readonly FieldInfo[];
  /** The fields that have no default. */
  readonly required: readonly FieldInfo[];
  /** The fields that `build` may find something to build in. */
  readonly builtFields: readonly FieldInfo[];
  /** The fields whose values may have parts, and so hold configs. */
  readonly partedFields: readonly FieldInfo[];
  /** Whether every config that the fields can hold is built. */
  readonly buildsAll: boolean;
  /** Builds the config: an instance that is set up, or the function's result. */
  readonly make: (hp: object) => unknown;
  /** Why a config with this info cannot be built: only a part of it may be there, for display. */
  readonly unbuildable?: string;
}

const noOldNames: OldNames = Object.create(null);
const infos = new WeakMap<AbstractClass, ClassInfo>();
const fieldInfos = new WeakMap<z.ZodType, Map<string, FieldInfo>>();

/** The hyperparameters of `cls`, which from here on can be found by its name. */
export function infoOf(cls: AbstractClass): ClassInfo {
  const known = infos.get(cls);
  if (known !== undefined) return known;
  const target = cls as unknown as {
    [FIELDS]: Fields;
    [OLD_NAMES]?: OldNames;
    [MAKE](hp: object): unknown;
  };
  const declared = target[FIELDS];
  const fields = new Map(Object.keys(declared).map((name) => [name, fieldInfo(name, declared[name]!)]));
  const all = [...fields.values()];
  const info: ClassInfo = {
    name: cls.name,
    cls,
    isAbstract: isAbstract(cls),
    fields,
    oldNames: target[OLD_NAMES] ?? noOldNames,
    allFields: all,
    required: all.filter((field) => field.default.kind === 'none'),
    builtFields: all.filter((field) => field.holdsBuilt),
    partedFields: all.filter((field) => mayHaveParts(field.schema)),
    buildsAll: all.every((field) => field.buildsAll),
    make: (hp) => target[MAKE](hp),
  };
  infos.set(cls, info);
  registerClass(cls);
  return info;
}

const mostNamed = 10;

/** Message that the class is abstract, with concrete candidates; undefined for a concrete class. */
export function abstractProblem(cls: AbstractClass): string | undefined {
  if (!isAbstract(cls)) return undefined;
  const below = concreteClasses().filter((other) => other.prototype instanceof cls);
  const names = below.map(({ name }) => name).sort();
  const more = names.length > mostNamed ? `, … and ${names.length - mostNamed} more` : '';
  const list = names.length === 0 ? '' : `: ${names.slice(0, mostNamed).join(', ')}${more}`;
  return `${cls.name} is abstract: use a class that extends it${list}.`;
}

function fieldInfo(name: string, schema: z.ZodType): FieldInfo {
  // Subclasses inherit schemas by the hundred: each is looked into once.
  let named = fieldInfos.get(schema);
  if (named === undefined) fieldInfos.set(schema, (named = new Map()));
  let info = named.get(name);
  if (info === undefined) named.set(name, (info = makeFieldInfo(name, schema)));
  return info;
}

function makeFieldInfo(name: string, schema: z.ZodType): FieldInfo {
  const { check, value } = readDefault(schema);
  const holders = holdersIn(schema);
  const buildsAll = holders.every((holder) => holder.kind !== 'sub') && !holdsUnknown(schema);
  return {
    name,
    schema,
    check,
    default: value,
    holder: holderOf(schema),
    holders,
    holdsBuilt: holders.some((holder) => holder.kind !== 'sub'),
    buildsAll,
    keepsValues: keepsValues(check),
    description: describedBy(schema),
    tags: sortTags(markedTags(schema)),
  };
}

function readDefault(schema: z.ZodType): { check: z.ZodType; value: Default } {
  for (let inner = schema; ; ) {
    const definition = definitionOf(inner);
    if (definition.type === 'default' || definition.type === 'prefault') {
      const check = inner === schema ? definition.innerType! : schema;
      return {
        check,
        value: { kind: 'value', make: () => definition.defaultValue, parsed: definition.type === 'prefault' },
      };
    }
    if (definition.type === 'optional')
      return { check: schema, value: { kind: 'value', make: () => undefined, parsed: false } };
    if (definition.innerType === undefined || definition.type === 'nonoptional') break;
    inner = definition.innerType;
  }
  const make = holderOf(schema)?.makeDefault;
  return { check: schema, value: make === undefined ? { kind: 'none' } : { kind: 'config', make } };
}

function describedBy(schema: z.ZodType): string | undefined {
  for (
    let inner: z.ZodType | undefined = schema;
    inner !== undefined;
    inner = definitionOf(inner).innerType
  ) {
    if (inner.description !== undefined) return inner.description;
  }
  return undefined;
}

/** Whether undefined may be written to the field. */
export function acceptsUndefined(field: FieldInfo): boolean {
  return accepts(field.schema, 'optional') || ['any', 'unknown'].includes(definitionOf(field.check).type);
}
