/** @file A config's changed tags in a document: names by field, with `-` before those that were taken away. */

import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { type ConfigNode, fieldOf, fieldTags, type Origin, writeTags } from '../nodes/node.js';
import { explicitTags, findTag } from '../tags.js';
import type { JsonConfig } from './format.js';
import { isRecord } from './parts.js';

/** The tags of a config that are not as its class declares them. */
export function tagNames(node: ConfigNode): Pick<JsonConfig, 'tags'> {
  const changes = [...explicitTags(node)];
  if (changes.length === 0) return {};
  const named = changes.map(([field, { added, removed }]): [string, string[]] => [
    field,
    [...added.map((tag) => tag.name), ...removed.map((tag) => `-${tag.name}`)],
  ]);
  return { tags: Object.fromEntries(named) };
}

/** Gives a config the tags that a document lists. @throws ConfigError for what is no such list, and unknown tags. */
export function readTags(node: ConfigNode, listed: unknown, origin: Origin): void {
  if (!isRecord(listed)) throw badList(listed);
  for (const [name, names] of Object.entries(listed)) {
    if (!Array.isArray(names) || !names.every((each): each is string => typeof each === 'string')) {
      throw badList(listed);
    }
    const field = fieldOf(node, name, origin);
    const isRemoved = (text: string): boolean => text.startsWith('-');
    const removed = names.filter(isRemoved).map((text) => findTag(text.slice(1)));
    const added = names.filter((text) => !isRemoved(text)).map((text) => findTag(text));
    const kept = fieldTags(node, field).filter((tag) => !removed.includes(tag));
    writeTags(node, field, [...kept, ...added], origin);
  }
}

function badList(listed: unknown): ConfigError {
  return new ConfigError(
    `tags are lists of names by field, such as {size: ['Added', '-Removed']}, got ${showValue(listed)}.`,
  );
}
