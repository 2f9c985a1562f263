/** @file Finding fields by tag anywhere below a root, and reading, setting or replacing their values. */

import { ConfigError } from '../errors.js';
import type { FieldInfo } from '../fields/fields.js';
import { carriedField, carriersIn, carrierTags, isCarrier } from '../nodes/carriers.js';
import { append } from '../nodes/containers.js';
import { copyAlone } from '../nodes/copying.js';
import {
  type ConfigNode,
  fieldTags,
  hasValue,
  type Origin,
  originText,
  rawValue,
  readField,
  writeField,
} from '../nodes/node.js';
import { origin } from '../nodes/record.js';
import type { Tag } from '../types.js';
import { allEdges } from '../walking/iterate.js';
import { walk } from '../walking/walk.js';
import { allOrNothing, maker, type ReplaceOptions, writeAll } from './manyWrites.js';
import { mapCarriers } from './tagged.js';

/** What to select by tag. */
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
  /** Sets every field to a value, or to what a function makes of the old one. Gives their number. */
  replace(replacement: unknown, options?: ReplaceOptions): number;
}

/** What a selection that found nothing says. */
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
        // A carrier belongs to the field whose container it stands in, and is checked with it.
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

/** What a tag marks: fields, or the values of carriers. */
function placesIn({ node, field, carriers }: TaggedField): TaggedField[] {
  return carriers?.map((carrier) => ({ node: carrier, field: carriedField(carrier) })) ?? [{ node, field }];
}

function readPlace({ node, field }: TaggedField): unknown[] {
  return hasValue(node, field) ? [readField(node, field)] : [];
}

function countPlaces(found: readonly TaggedField[]): number {
  return found.reduce((count, { carriers }) => count + (carriers?.length ?? 1), 0);
}

/** What is to be written to a field so that what the tag marks there gets what `make` gives for it. */
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
