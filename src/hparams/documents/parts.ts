/** @file Parts of a parsed document: records, paths, entries and tags. */

import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { type ConfigNode, fieldOf, fieldTags, type Origin, writeTags } from '../nodes/node.js';
import { explicitTags, findTag } from '../tags.js';
import { formatPath, type PathLink, type Segment } from '../walking/paths.js';
import { deepestDocument, type JsonConfig } from './format.js';

/** Keys of a config that is written in place which name no field. */
export const reservedNames: ReadonlySet<string> = new Set(['$class', '$kind', '$tags']);

/** Whether `value` is a parsed record. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// The paths of a long chain would take space, and time, that grow with the square of its length.
const mostSteps = 40;

/** The text of a path, of a long one its end alone; `<root>` for the empty one. */
export function shortPath(link: PathLink | undefined): string {
  const segments: Segment[] = [];
  let at = link;
  for (; at !== undefined && segments.length < mostSteps; at = at.parent) segments.push(at.segment);
  const text = formatPath(segments.reverse());
  if (text === '') return '<root>';
  return at === undefined ? text : `…${text.startsWith('[') ? '' : '.'}${text}`;
}

/** The path `inner` seen from the config at `outer`. */
export function joinPaths(outer: string, inner: string): string {
  if (outer === '<root>') return inner;
  if (inner === '<root>') return outer;
  return inner.startsWith('[') ? outer + inner : `${outer}.${inner}`;
}

/** The first path to each entry of a document, found by following the references from the root. */
export function entryLinks(root: unknown, entries: readonly unknown[]): (PathLink | undefined)[] {
  const links: (PathLink | undefined)[] = [];
  const seen = new Set<number>();
  const open: { value: unknown; link: PathLink | undefined; depth: number; isEntry: boolean }[] = [
    { value: root, link: undefined, depth: 0, isEntry: false },
  ];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, link, depth, isEntry } = next;
    if (typeof value !== 'object' || value === null || depth > deepestDocument) continue;
    const number = isRecord(value) ? value.$config : undefined;
    if (typeof number === 'number') {
      if (seen.has(number)) continue;
      seen.add(number);
      links[number] = link;
      const entry = entries[number];
      const values = isRecord(entry) ? (entry.values ?? entry) : undefined;
      open.push({ value: values, link, depth: 0, isEntry: true });
      continue;
    }
    const keys = Object.keys(value).reverse();
    for (const key of keys) {
      const segment: Segment = Array.isArray(value) ? Number(key) : isEntry ? key : { key };
      const part = (value as Record<string, unknown>)[key];
      open.push({ value: part, link: { parent: link, segment }, depth: depth + 1, isEntry: false });
    }
  }
  return links;
}

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
