/** @file Reading zod schemas: their defaults, their holders, and descriptions of accepted values. */
import { z } from 'zod';
import { PromiseError } from '../errors.js';
import type { AbstractClass, AnyConfig, Fields, Tag } from '../types.js';

/** Key of the mark that `sub`, `instance`, `factory` and `builds` leave in a schema's definition. */
const HOLDER: unique symbol = Symbol('luthier.holder');
/** Key of the tags that `tagged` leaves in a schema's definition. */
const TAGS: unique symbol = Symbol('luthier.tags');
/** Key of the names that `renamed` leaves in a schema's definition. */
const OLD_NAMES: unique symbol = Symbol('luthier.oldNames');

/** Properties of a field that holds configs. */
export interface Holder {
  /** A template stays a config, an instance is built, a factory is built to a function. */
  readonly kind: 'sub' | 'instance' | 'factory';
  /** The class of the configs, or a base of it; absent if `takes` does not need one. */
  readonly cls: AbstractClass | undefined;
  /** Whether configs of this class or function are held. */
  readonly takes: (cls: AbstractClass) => boolean;
  /** The configs in words: `a Linear config`. */
  readonly configs: string;
  /** Makes the default, absent where the field must be set. */
  readonly makeDefault: (() => AnyConfig) | undefined;
}

/** The parts of zod's definitions that are read here. */
export interface Definition {
  type: string;
  innerType?: z.ZodType;
  element?: z.ZodType;
  items?: z.ZodType[];
  rest?: z.ZodType | null;
  keyType?: z.ZodType;
  valueType?: z.ZodType;
  options?: z.ZodType[];
  discriminator?: string;
  transform?: (...values: unknown[]) => unknown;
  shape?: Fields;
  catchall?: z.ZodType;
  in?: z.ZodType;
  out?: z.ZodType;
  left?: z.ZodType;
  right?: z.ZodType;
  entries?: Record<string, string | number>;
  values?: unknown[];
  format?: string;
  coerce?: boolean;
  readonly defaultValue?: unknown;
  checks?: { _zod: { def: Check } }[];
  [HOLDER]?: Holder;
  [TAGS]?: readonly Tag[];
  [OLD_NAMES]?: readonly string[];
}

/** One constraint of a schema, as zod stores it. */
export interface Check {
  check: string;
  value?: number;
  inclusive?: boolean;
  format?: string;
  minimum?: number;
  maximum?: number;
  length?: number;
  pattern?: RegExp;
}

/** Parses `value` by `schema`. @throws PromiseError where a function in the schema is async. */
export function parse(schema: z.ZodType, value: unknown): z.ZodSafeParseResult<unknown> {
  watchTransforms(schema);
  // safeParse drops the promise of an async refinement, and its later rejection would end the process.
  const context: z.core.ParseContextInternal = {};
  try {
    const result = schema._zod.run({ value, issues: [] }, context);
    if (result instanceof Promise) {
      result.catch(() => {});
      throw new z.core.$ZodAsyncError();
    }
    const { issues, value: data } = result;
    if (issues.length === 0) return { success: true, data };
    const finalized = issues.map((issue) => z.core.util.finalizeIssue(issue, context, z.core.config()));
    return { success: false, error: new z.ZodError(finalized) };
  } catch (error) {
    if (!(error instanceof z.core.$ZodAsyncError)) throw error;
    throw new PromiseError('a refinement or transform must not be async: its result counts when it returns.');
  }
}

export function definitionOf(schema: z.ZodType): Definition {
  return schema._zod.def as unknown as Definition;
}

/** The inner schema of a z.lazy: zod keeps it, so that a recursive schema is finitely many objects. */
function lazyInner(schema: z.ZodType): z.ZodType {
  return (schema._zod as unknown as { innerType: z.ZodType }).innerType;
}

/** Marks a schema for `holderOf`; `.describe()` and `.refine()` keep the mark. */
export function markHolder<S extends z.ZodType>(schema: S, holder: Holder): S {
  definitionOf(schema)[HOLDER] = holder;
  return schema;
}

/** Marks `schema` as one of containers whose parts `items` checks. */
export function markItems<S extends z.ZodType>(schema: S, items: z.ZodType): S {
  definitionOf(schema).element = items;
  return schema;
}

/** The holder that `schema` is, seen through optional, nullable, default and the like. */
export function holderOf(schema: z.ZodType): Holder | undefined {
  return definitionOf(innermost(schema))[HOLDER];
}

/** A schema like `schema` with more marks; the given one, which other fields may use, stays as it is. */
function marked<S extends z.ZodType>(
  schema: S,
  key: typeof TAGS | typeof OLD_NAMES,
  marks: readonly unknown[],
): S {
  const definition = definitionOf(schema);
  const own: readonly unknown[] = definition[key] ?? [];
  return schema.clone({ ...definition, [key]: [...own, ...marks] } as never, { parent: true });
}

/** The marks of a schema, and of those that it wraps. */
function marksOf<K extends typeof TAGS | typeof OLD_NAMES>(
  schema: z.ZodType,
  key: K,
): NonNullable<Definition[K]>[number][] {
  const marks = new Set<NonNullable<Definition[K]>[number]>();
  for (let inner: z.ZodType | undefined = schema; inner !== undefined; ) {
    const definition = definitionOf(inner);
    for (const mark of definition[key] ?? []) marks.add(mark);
    inner = definition.innerType ?? (definition[HOLDER] === undefined ? definition.in : undefined);
  }
  return [...marks];
}

/** `tags` without doubles, sorted by name. */
export function sortTags(tags: Iterable<Tag>): readonly Tag[] {
  return [...new Set(tags)].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A schema like `schema` that carries `tags` too. */
export function markTags<S extends z.ZodType>(schema: S, tags: readonly Tag[]): S {
  return marked(schema, TAGS, tags);
}

/** The tags of a schema, and of those that it wraps. */
export function markedTags(schema: z.ZodType): readonly Tag[] {
  return marksOf(schema, TAGS);
}

/** A schema like `schema` whose field was called `names` before. */
export function markOldNames<S extends z.ZodType>(schema: S, names: readonly string[]): S {
  return marked(schema, OLD_NAMES, names);
}

/** Former names of a schema's field. */
export function markedOldNames(schema: z.ZodType): readonly string[] {
  return marksOf(schema, OLD_NAMES);
}

const wrappers = new Set(['optional', 'nullable', 'default', 'prefault', 'readonly', 'nonoptional', 'catch']);

/** `schema` without its wrappers. */
export function innermost(schema: z.ZodType): z.ZodType {
  let inner = schema;
  for (;;) {
    const definition = definitionOf(inner);
    if (definition[HOLDER] !== undefined) return inner;
    if (wrappers.has(definition.type)) inner = definition.innerType!;
    else if (definition.type === 'lazy') inner = lazyInner(inner);
    else return inner;
  }
}

/** Whether a wrapper of `schema` lets null (or undefined) through. */
export function accepts(schema: z.ZodType, wrapper: 'nullable' | 'optional'): boolean {
  for (let inner = schema; ; ) {
    const definition = definitionOf(inner);
    if (definition.type === wrapper) return true;
    if (!wrappers.has(definition.type)) return false;
    inner = definition.innerType!;
  }
}

/** The schemas directly below `schema`. */
function childSchemas(schema: z.ZodType): z.ZodType[] {
  const d = definitionOf(schema);
  const several = [...(d.items ?? []), ...(d.options ?? []), ...Object.values(d.shape ?? {})];
  const single = [d.innerType, d.element, d.rest, d.keyType, d.valueType, d.catchall];
  const both = [d.in, d.out, d.left, d.right];
  if (d.type === 'lazy') single.push(lazyInner(schema));
  return [...several, ...single, ...both].filter((child) => child !== undefined && child !== null);
}

/** Every schema in `schema`, itself included, each once. */
function allSchemas(schema: z.ZodType): Set<z.ZodType> {
  const seen = new Set([schema]);
  for (const each of seen) {
    if (definitionOf(each)[HOLDER] === undefined) for (const child of childSchemas(each)) seen.add(child);
  }
  return seen;
}

const watched = new WeakSet<z.ZodType>();

/** Handles rejections of async transforms: zod drops their promises before anyone can, which would end the process. */
function watchTransforms(schema: z.ZodType): void {
  if (watched.has(schema)) return;
  for (const each of allSchemas(schema)) {
    const definition = definitionOf(each);
    const { type, transform } = definition;
    if (type === 'transform' && !watched.has(each)) {
      definition.transform = (...values) => {
        const result = transform!(...values);
        if (result instanceof Promise) result.catch(() => {});
        return result;
      };
    }
    watched.add(each);
  }
}

/** The holders anywhere in `schema`. */
export function holdersIn(schema: z.ZodType): Holder[] {
  return [...allSchemas(schema)].flatMap((each) => definitionOf(each)[HOLDER] ?? []);
}

const partless = ['number', 'string', 'boolean', 'bigint', 'null', 'undefined', 'literal', 'enum'];
const transparent = new Set([
  ...wrappers,
  ...partless,
  'date',
  ...['array', 'tuple', 'record', 'object', 'union', 'map', 'set', 'lazy'],
]);

/** Whether a part of `schema` accepts values outside of its holders: configs among them are left as they are. */
export function holdsUnknown(schema: z.ZodType): boolean {
  return [...allSchemas(schema)].some((each) => {
    const d = definitionOf(each);
    return d[HOLDER] === undefined && (!transparent.has(d.type) || d.catchall !== undefined);
  });
}

/** Whether `schema` accepts anything but numbers, strings and the like. */
export function mayHaveParts(schema: z.ZodType): boolean {
  return [...allSchemas(schema)].some((each) => {
    const { type } = definitionOf(each);
    return !(partless.includes(type) || wrappers.has(type) || type === 'union');
  });
}

const keeping = new Set([
  ...partless,
  ...['array', 'tuple', 'record', 'union', 'optional', 'nullable', 'lazy'],
]);

// Checks that may put another value in the place of theirs; zod does so for addresses.
const changing: ReadonlySet<string> = new Set(['custom', 'overwrite', 'string_format']);

/**
 * Whether parsing returns its input, so that a parsed value need not be parsed again. Configs are built by their
 * holder, at most one per schema. Refinements may read configs, which change.
 */
export function keepsValues(schema: z.ZodType): boolean {
  const all = [...allSchemas(schema)].map(definitionOf);
  const holders = all.filter((each) => each[HOLDER] !== undefined);
  return holders.length <= 1 && all.every(keepsValue);
}

function keepsValue(definition: Definition): boolean {
  const checks = (definition.checks ?? []).map((check) => check._zod.def);
  if (definition[HOLDER] !== undefined) return checks.length === 0;
  const isKept = keeping.has(definition.type) && definition.coerce !== true;
  const hasTextKeys = definition.keyType === undefined || definitionOf(definition.keyType).type === 'string';
  const all = [definition as unknown as Check, ...checks];
  return isKept && hasTextKeys && all.every(({ check }) => !changing.has(check));
}

/** Schema of the part `key` of a value of `schema`. */
export function partSchema(schema: z.ZodType, key: PropertyKey): z.ZodType | undefined {
  const d = definitionOf(innermost(schema));
  // Apart from arrays, only the schemas that holders.ts makes for container classes have it.
  if (d.element !== undefined) return d.element;
  if (d.type === 'tuple') return d.items![Number(key)] ?? d.rest ?? undefined;
  if (d.type === 'record' || d.type === 'map' || d.type === 'set') return d.valueType;
  if (d.type === 'object') {
    const name = String(key);
    return Object.hasOwn(d.shape!, name) ? d.shape![name] : d.catchall;
  }
  if (d.type === 'pipe') return partSchema(d.in!, key);
  return childSchemas(innermost(schema))
    .map((child) => partSchema(child, key))
    .find((found) => found !== undefined);
}
