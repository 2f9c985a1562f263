/** @file Working with everything that has a tag: setting it, listing the tags, and doing away with carriers. */

import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import type { FieldInfo } from '../fields/fields.js';
import { carriedBy, carrierOf, carrierTags, hasCarried, holdsCarrier, isCarrier } from '../nodes/carriers.js';
import { mapContainers } from '../nodes/containers.js';
import { copyAlone, deepCopyOf } from '../nodes/copying.js';
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
import { sortTags } from '../nodes/nodeTags.js';
import { origin } from '../nodes/record.js';
import { requireTag } from '../tags.js';
import type { AnyConfig, Tag } from '../types.js';
import { allEdges } from '../walking/iterate.js';
import { walk } from '../walking/walk.js';
import { deepCopy } from './copy.js';
import { allOrNothing } from './manyWrites.js';

export interface SetTaggedOptions {
  /** Gives every field the value itself, rather than a deep copy of its own. */
  readonly share?: boolean;
  /** Takes it for no error where nothing has the tag, as the option of `select` does. */
  readonly allowEmpty?: boolean;
}

/**
 * Sets every field, and every value in a container, that has `tag` or a tag below it. What is set counts as written by
 * the caller. Returns how many were set.
 *
 * @throws ConfigError where nothing has the tag, and for a value that does not fit one of the places: then none is set.
 */
export function setTagged(root: unknown, tag: Tag, value: unknown, options: SetTaggedOptions = {}): number {
  const writer = origin();
  requireTag(tag, 'setTagged', writer);
  const matches = (tags: readonly Tag[]): boolean => tags.some((each) => each.isA(tag));
  const valueFor = (): unknown => (options.share === true ? value : deepCopyOf(value));
  let count = 0;
  allOrNothing((write) => {
    for (const { node, field } of fieldsIn(root)) {
      if (matches(fieldTags(node, field))) {
        write(node, field.name, valueFor());
        count += 1;
      } else if (holdsCarrier(rawValue(node, field))) {
        const before = count;
        const replaced = mapCarriers(rawValue(node, field), (carrier) => {
          if (!matches(carrierTags(carrier))) return undefined;
          count += 1;
          const next = copyAlone(carrier);
          writeField(next, 'value', valueFor(), writer);
          return next.proxy;
        });
        if (count > before) write(node, field.name, replaced);
      }
    }
  }, writer);
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

export interface MaterializeOptions {
  /** Only these tags, and those below them; the default is all. */
  readonly tags?: readonly Tag[];
  /** Takes the tags from fields that have a value, too. */
  readonly clearFields?: boolean;
}

/** A deep copy in which values stand in place of the carriers that `tag.new()` made. Carriers without a value stay. */
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
 * The fields of all configs in `root`, default ones among them, each once. Without `inCarriers` those of carriers are
 * left out: a carrier belongs to the field whose container it stands in.
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

/** A copy of the containers in `value` with what `replace` gives for each carrier, those in carriers included. */
export function mapCarriers(value: unknown, replace: (carrier: ConfigNode) => unknown): unknown {
  return mapContainers(value, (leaf) => {
    const carrier = carrierOf(leaf);
    if (carrier === undefined) return leaf;
    const replaced = replace(carrier);
    if (replaced !== undefined) {
      // What takes the carrier's place may hold carriers itself.
      return carrierOf(replaced) === undefined ? mapCarriers(replaced, replace) : replaced;
    }
    if (!holdsCarrier(carriedBy(carrier))) return leaf;
    const next = copyAlone(carrier);
    next.values.value = mapCarriers(carriedBy(carrier), replace);
    return next.proxy;
  });
}
