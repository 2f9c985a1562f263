/** @file Tags: labels on fields, by which distant values are found and set together. */
import { z } from 'zod';
import { didYouMean } from '../system/text/index.js';
import { Configurable } from './configurable.js';
import { ConfigError } from './errors.js';
import { markLibrary } from './fields/declaringModule.js';
import { showValue } from './fields/describe.js';
import { CARRIER, type FieldInfo, infoOf } from './fields/fields.js';
import { markTags } from './fields/schema.js';
import { newConfig } from './nodes/config.js';
import {
  type ConfigNode,
  fieldOf,
  fieldTags,
  nodeOf,
  type Origin,
  originText,
  requireNode,
  writeField,
  writeTags,
} from './nodes/node.js';
import { origin } from './nodes/record.js';
import { captureTrace, fileOfTrace, placeText, type Trace } from './source.js';
import type { AnyConfig, NameIn, Tag, TagChanges } from './types.js';

/** A carrier of its value: `build` unwraps it, reading the container that holds it gives the value. */
class TaggedValue extends Configurable.with({ value: z.any() }) {
  static readonly [CARRIER] = true;
}

// No room exports it.
markLibrary([TaggedValue]);
const info = infoOf(TaggedValue);
const field = info.fields.get('value')!;

/** A carrier of tags and a value; without `value`, of tags alone. */
function newCarrier(tags: readonly Tag[], value: readonly [unknown?], origin: Origin): ConfigNode {
  const node = nodeOf(newConfig(info, 'config'))!;
  if (value.length > 0) writeField(node, 'value', value[0], origin);
  writeTags(node, field, [...fieldTags(node, field), ...tags], origin);
  return node;
}

class NamedTag implements Tag {
  readonly name: string;
  readonly description: string;
  readonly parent: Tag | undefined;

  constructor(name: string, description: string, parent: Tag | undefined) {
    this.name = name;
    this.description = description;
    this.parent = parent;
    Object.freeze(this);
  }

  isA(other: Tag): boolean {
    for (let tag: Tag | undefined = this; tag !== undefined; tag = tag.parent) if (tag === other) return true;
    return false;
  }

  new(): never;
  new<V>(value: V): V;
  new(...value: [value?: unknown]): unknown {
    return newCarrier([this], value, origin()).proxy;
  }

  toString(): string {
    return `#${this.name}`;
  }
}

const defined = new Map<string, { readonly tag: Tag; readonly trace: Trace }>();

/**
 * A new tag. The description names the common property of its fields; a tag with a parent marks a subset of the
 * parent's fields. `V` is the type of its values: only fields that accept all of them can have it, and it is set to
 * such values alone.
 *
 * @throws ConfigError for a name that is taken or cannot be written in a path or flag, and for a missing description.
 */
export function defineTag<V = any>(
  name: string,
  description: string,
  options: { parent?: Tag } = {},
): Tag<V> {
  const trace = captureTrace();
  const fail = (problem: string): never => {
    throw new ConfigError(problem, { place: placeText(trace) });
  };
  if (typeof name !== 'string' || !/^[A-Za-z_$][\w$.-]*$/.test(name)) {
    fail(
      `A tag's name has letters, digits, '_', '-' and '.', and begins with a letter; got ${showValue(name)}.`,
    );
  }
  if (typeof description !== 'string' || description.trim() === '') {
    fail(`The tag '${name}' needs a description of the fields it marks, got ${showValue(description)}.`);
  }
  const before = defined.get(name);
  if (before !== undefined) {
    const there = placeText(before.trace);
    fail(`The tag '${name}' is already defined${there === undefined ? '' : `, at ${there}`}.`);
  }
  const tag = new NamedTag(name, description, options.parent);
  defined.set(name, { tag, trace });
  return tag;
}

/** The file that defines a tag. */
export function fileOfTag({ name }: Tag): string | undefined {
  const tag = defined.get(name);
  return tag && fileOfTrace(tag.trace);
}

/** Whether there is a tag called `name`. */
export function isTagDefined(name: string): boolean {
  return defined.has(name);
}

/** The tag called `name`. @throws ConfigError with a suggestion where none was defined. */
export function findTag(name: string): Tag {
  const found = defined.get(name);
  if (found !== undefined) return found.tag;
  const names = [...defined.keys()].sort();
  const valid = names.length === 0 ? 'None is defined.' : `There are ${names.join(', ')}.`;
  throw new ConfigError(`No tag '${name}' is defined.${didYouMean(name, names) || ` ${valid}`}`);
}

/** A field's schema with tags: every config of the class has them from the start. */
export function tagged<S extends z.ZodType>(schema: S, ...tags: readonly Tag<z.input<S>>[]): S {
  for (const tag of tags) requireTag(tag, 'tagged', undefined);
  return markTags(schema, tags);
}

/** The tags of a field, sorted by name: declared by the class, with later additions and removals. */
export function getTags<C extends AnyConfig>(config: C, field: NameIn<C>): Tag[] {
  const node = requireNode(config, 'getTags');
  return [...fieldTags(node, fieldOf(node, String(field), origin()))];
}

/** Adds tags to a field. @throws ConfigError for a field that does not exist. */
export function addTag<C extends AnyConfig>(config: C, field: NameIn<C>, ...tags: readonly Tag[]): void {
  change('addTag', config, field, tags, (present) => [...present, ...tags]);
}

/** Takes a tag from a field, be it a declared one. @throws ConfigError where the field does not have the tag. */
export function removeTag<C extends AnyConfig>(config: C, field: NameIn<C>, tag: Tag): void {
  change('removeTag', config, field, [tag], (present, node, { name }, writer) => {
    if (present.includes(tag)) return present.filter((each) => each !== tag);
    const valid = present.length === 0 ? 'It has no tags.' : `It has ${present.join(', ')}.`;
    throw new ConfigError(`The tag ${tag} is not set on ${node.info.name}.${name}. ${valid}`, {
      path: name,
      place: originText(writer),
    });
  });
}

/** Makes `tags` the tags of a field, in place of all it had. */
export function setTags<C extends AnyConfig>(config: C, field: NameIn<C>, tags: Iterable<Tag>): void {
  const wanted = [...tags];
  change('setTags', config, field, wanted, () => wanted);
}

/** Takes all tags from a field, the declared ones too. */
export function clearTags<C extends AnyConfig>(config: C, field: NameIn<C>): void {
  change('clearTags', config, field, [], () => []);
}

type Change = (present: readonly Tag[], node: ConfigNode, field: FieldInfo, writer: Origin) => readonly Tag[];

function change(
  operation: string,
  config: AnyConfig,
  name: PropertyKey,
  tags: readonly Tag[],
  next: Change,
): void {
  const writer = origin();
  const node = requireNode(config, operation);
  const field = fieldOf(node, String(name), writer);
  for (const tag of tags) requireTag(tag, operation, writer);
  writeTags(node, field, next(fieldTags(node, field), node, field, writer), writer);
}

/** @throws ConfigError for anything but a tag. */
export function requireTag(tag: unknown, operation: string, writer: Origin | undefined): asserts tag is Tag {
  if (tag instanceof NamedTag) return;
  const hint = typeof tag === 'string' ? ` findTag(${showValue(tag)}) finds a tag by its name.` : '';
  throw new ConfigError(`${operation}() takes tags made by defineTag(), got ${showValue(tag)}.${hint}`, {
    place: writer === undefined ? placeText(captureTrace()) : originText(writer),
  });
}

/** For tools: fields of a node whose tags differ from the declared ones, with additions and removals. */
export function explicitTags(node: ConfigNode): TagChanges {
  return node.tags ?? noChanges;
}

const noChanges: TagChanges = new Map();
