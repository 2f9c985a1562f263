/** @file Selections of fields and values by tag, lists of tags, and materialised tags. */
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import type { FieldInfo } from '../fields/fields.js';
import { sortTags } from '../fields/schema.js';
import {
  carriedBy,
  carriedField,
  carrierOf,
  carriersIn,
  carrierTags,
  hasCarried,
  holdsCarrier,
  isCarrier,
} from '../nodes/carriers.js';
import { append, mapContainers } from '../nodes/containers.js';
import { copyAlone, deepCopyOf } from '../nodes/fieldValues.js';
import {
  type ConfigNode,
  fieldTags,
  hasValue,
  type Origin,
  originText,
  rawValue,
  writeField,
  writeTags,
} from '../nodes/node.js';
import { readField } from '../nodes/reading.js';
import { origin, withOrigin } from '../nodes/record.js';
import { requireTag } from '../tags.js';
import type { AnyConfig, Tag } from '../types.js';
import { allEdges } from '../walking/iterate.js';
import { walk } from '../walking/walk.js';
import { deepCopy } from './edit.js';
import { allOrNothing, maker, type ReplaceOptions, writeAll } from './manyWrites.js';

/** Query by tag. */
export interface TagQuery {
  /** Fields with this tag, or one that descends from it. */
  readonly tag: Tag;
  readonly allowEmpty?: boolean;
}

/** Fields found by tag; iterating gives the values that they have, set or by default. */
export interface TagSelection extends Iterable<unknown> {
  get(): unknown[];
  /** Sets every field to one value: a config is then shared by all. Gives their number. */
  set(value: unknown): number;
  /** Sets every field to a value, or to the result of a function of the old one. Returns their number. */
  replace(replacement: unknown, options?: ReplaceOptions): number;
}

/** Hint for a selection that found nothing. */
export const acceptEmpty = 'If that is fine, select with { allowEmpty: true }.';

export class FieldsByTag implements TagSelection {
  constructor(
    private readonly root: unknown,
    private readonly query: TagQuery,
  ) {}

  *[Symbol.iterator](): Iterator<unknown> {
    yield* this.get();
  }

  get(): unknown[] {
    const found = this.find('get', this.query.allowEmpty !== false, origin());
    return found.flatMap((place) => placesIn(place).flatMap(readPlace));
  }

  set(value: unknown): number {
    const writer = origin();
    const found = this.find('set', this.query.allowEmpty === true, writer);
    const writes = found.map((place) => ({
      node: place.node,
      name: place.field.name,
      value: withPlaces(place, () => value, writer),
    }));
    writeAll('select().set()', writes, writer);
    return countPlaces(found);
  }

  replace(replacement: unknown, options: ReplaceOptions = {}): number {
    const writer = origin();
    const found = this.find('replace', this.query.allowEmpty === true, writer);
    const make = maker(replacement, options);
    allOrNothing((write) => {
      for (const place of found) write(place.node, place.field.name, withPlaces(place, make, writer));
    }, writer);
    return countPlaces(found);
  }

  private find(verb: string, mayBeEmpty: boolean, writer: Origin): TaggedField[] {
    const found: TaggedField[] = [];
    const others = new Set<string>();
    const matches = (tags: readonly Tag[]): boolean => {
      if (tags.some((tag) => tag.isA(this.query.tag))) return true;
      for (const tag of tags) others.add(String(tag));
      return false;
    };
    walk(this.root, {
      children: allEdges,
      leave: (node) => {
        // A carrier belongs to the field of its container, and is checked with it.
        if (isCarrier(node)) return;
        const whole: TaggedField[] = [];
        for (const field of node.info.fields.values()) {
          if (matches(fieldTags(node, field))) whole.push({ node, field });
          else if (hasValue(node, field)) {
            const carriers = carriersIn(rawValue(node, field)).filter((each) => matches(carrierTags(each)));
            if (carriers.length > 0) found.push({ node, field, carriers });
          }
        }
        append(found, whole);
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

/** A field that has a tag, or in whose containers carriers have it. */
interface TaggedField {
  readonly node: ConfigNode;
  readonly field: FieldInfo;
  readonly carriers?: readonly ConfigNode[];
}

/** Places marked by a tag: fields, or the values of carriers. */
function placesIn({ node, field, carriers }: TaggedField): TaggedField[] {
  return carriers?.map((carrier) => ({ node: carrier, field: carriedField(carrier) })) ?? [{ node, field }];
}

function readPlace({ node, field }: TaggedField): unknown[] {
  return hasValue(node, field) ? [readField(node, field)] : [];
}

function countPlaces(found: readonly TaggedField[]): number {
  return found.reduce((count, { carriers }) => count + (carriers?.length ?? 1), 0);
}

/** The new value of a field whose tagged places are set by `make`. */
function withPlaces(place: TaggedField, make: (old: unknown) => unknown, writer: Origin): unknown {
  const valueFor = (each: TaggedField): unknown => make(readPlace(each)[0]);
  if (place.carriers === undefined) return valueFor(place);
  const matching = new Set(place.carriers);
  return mapCarriers(rawValue(place.node, place.field), (carrier) => {
    if (!matching.has(carrier)) return undefined;
    const next = copyAlone(carrier);
    writeField(next, 'value', valueFor({ node: carrier, field: carriedField(carrier) }), writer);
    return next.proxy;
  });
}

interface SetTaggedOptions {
  /** Gives every field the value itself, rather than a deep copy of its own. */
  readonly share?: boolean;
  /** Takes it for no error where nothing has the tag, as the option of `select` does. */
  readonly allowEmpty?: boolean;
}

/**
 * Sets every field, and every value in a container, that has `tag` or a tag below it. The history names the caller.
 * Returns the number of places.
 *
 * @throws ConfigError if nothing has the tag, or a place does not accept the value: then none is set.
 */
export function setTagged<V>(
  root: unknown,
  tag: Tag<V>,
  value: NoInfer<V>,
  options: SetTaggedOptions = {},
): number {
  const writer = origin();
  requireTag(tag, 'setTagged', writer);
  const made = (): unknown => (options.share === true ? value : deepCopyOf(value));
  const count = withOrigin(writer, () => new FieldsByTag(root, { tag, allowEmpty: true }).replace(made));
  if (count === 0 && options.allowEmpty !== true) throw nothingTagged(root, tag, writer);
  return count;
}

function nothingTagged(root: unknown, tag: Tag, writer: Origin): ConfigError {
  const present = listTags(root);
  const valid =
    present.length === 0 ? 'Nothing there has tags.' : `The tags there are ${present.join(', ')}.`;
  return new ConfigError(
    `Nothing in ${showValue(root)} is tagged ${tag}. ${valid} If that is fine, pass { allowEmpty: true }.`,
    { place: originText(writer) },
  );
}

/** The tags of all fields and values in `root`, sorted by name; with `superclasses`, the tags above them too. */
export function listTags(root: unknown, options: { superclasses?: boolean } = {}): Tag[] {
  const found = new Set<Tag>();
  for (const { node, field } of fieldsIn(root, true)) {
    for (const tag of fieldTags(node, field)) {
      found.add(tag);
      if (options.superclasses !== true) continue;
      for (let above = tag.parent; above !== undefined; above = above.parent) found.add(above);
    }
  }
  return [...sortTags(found)];
}

interface MaterializeOptions {
  /** Only these tags, and those below them; the default is all. */
  readonly tags?: readonly Tag[];
  /** Takes the tags from fields that have a value, too. */
  readonly clearFields?: boolean;
}

/** A deep copy with the values of the carriers that `tag.new()` made. Carriers without a value stay. */
export function materializeTags<C extends AnyConfig>(config: C, options: MaterializeOptions = {}): C {
  const writer = origin();
  for (const tag of options.tags ?? []) requireTag(tag, 'materializeTags', writer);
  const stays = (tag: Tag): boolean => options.tags?.some((each) => tag.isA(each)) === false;
  const made = deepCopy(config);
  for (const { node, field } of fieldsIn(made)) {
    const value = rawValue(node, field);
    let changed = false;
    const replaced = !holdsCarrier(value)
      ? value
      : mapCarriers(value, (carrier) => {
          const kept = carrierTags(carrier).filter(stays);
          if (!hasCarried(carrier) || kept.length === carrierTags(carrier).length) return undefined;
          changed = true;
          if (kept.length === 0) return carriedBy(carrier);
          const next = copyAlone(carrier);
          writeTags(next, next.info.fields.get('value')!, kept, writer);
          return next.proxy;
        });
    if (changed) writeField(node, field.name, replaced, writer);
    if (options.clearFields !== true || !hasValue(node, field)) continue;
    const tags = fieldTags(node, field);
    const kept = tags.filter(stays);
    if (kept.length < tags.length) writeTags(node, field, kept, writer);
  }
  return made;
}

/**
 * The fields of all configs in `root`, including defaults, each once. Without `inCarriers` those of carriers are left
 * out: a carrier belongs to the field of its container.
 */
function fieldsIn(root: unknown, inCarriers = false): { node: ConfigNode; field: FieldInfo }[] {
  const found: { node: ConfigNode; field: FieldInfo }[] = [];
  walk(root, {
    children: allEdges,
    enter(node) {
      if (isCarrier(node) && !inCarriers) return;
      for (const field of node.info.fields.values()) found.push({ node, field });
    },
  });
  return found;
}

/** A copy of the containers in `value`; `replace` replaces each carrier, also within carriers. */
function mapCarriers(value: unknown, replace: (carrier: ConfigNode) => unknown): unknown {
  return mapContainers(value, (leaf) => {
    const carrier = carrierOf(leaf);
    if (carrier === undefined) return leaf;
    const replaced = replace(carrier);
    if (replaced !== undefined) {
      // A replacement may hold carriers itself.
      return carrierOf(replaced) === undefined ? mapCarriers(replaced, replace) : replaced;
    }
    if (!holdsCarrier(carriedBy(carrier))) return leaf;
    const next = copyAlone(carrier);
    next.values.value = mapCarriers(carriedBy(carrier), replace);
    return next.proxy;
  });
}
