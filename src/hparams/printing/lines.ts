/** @file A graph of configs as a sequence of lines with paths, from which the printed forms are made. */

import type { z } from 'zod';
import { showLong } from '../fields/describe.js';
import type { FieldInfo } from '../fields/fields.js';
import { partSchema } from '../fields/schema.js';
import { carriedBy, carrierOf, carrierTags, hasCarried } from '../nodes/carriers.js';
import { deeper, partsOf } from '../nodes/containers.js';
import { type ConfigNode, fieldTags, hasValue, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import type { Tag } from '../types.js';
import { formatSegment, type Segment } from '../walking/paths.js';
import { ClassLabels } from './classLabels.js';

// Written out in full, the paths of a long chain would take space that grows with the square of its length.
const deepestPath = 64;

/** What a line tells. */
export type Line =
  /** A value without configs, or a missing one. */
  | { readonly kind: 'value'; readonly path: string; readonly item: Item }
  /** An array or record with configs in it; its parts follow. */
  | { readonly kind: 'container'; readonly path: string; readonly item: Item }
  /** A config whose fields follow. */
  | {
      readonly kind: 'config';
      readonly path: string;
      readonly item: Item;
      readonly node: ConfigNode;
      readonly text: string;
    }
  /** A config that was met before, first at `first`. */
  | {
      readonly kind: 'again';
      readonly path: string;
      readonly item: Item;
      readonly node: ConfigNode;
      readonly first: string;
    }
  /** The path grew too long: from here on it begins with `label`. */
  | { readonly kind: 'label'; readonly path: string; readonly label: string; readonly node: ConfigNode };

interface Open {
  readonly item: Item;
  readonly path: string;
  readonly depth: number;
  readonly around: Open | undefined;
}

/**
 * The lines of `root`, outer before inner. The path of the root is the empty string. A config's fields are shown where it
 * is met first, and at `places` places at most.
 */
export function* linesOf(
  root: unknown,
  hideDefaults = false,
  places = 1,
  labels = ClassLabels.in(root),
): Generator<Line> {
  const met = new Map<ConfigNode, { first: string; times: number }>();
  let count = 0;
  const open: Open[] = [{ item: rootItem(root), path: '', depth: 0, around: undefined }];
  const push = (items: Item[], around: Open, path: string, depth: number): void => {
    for (const item of items.reverse()) {
      open.push({ item, path: path + formatSegment(item.segment!, path === ''), depth: depth + 1, around });
    }
  };
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { item, path, depth } = next;
    const node = nodeOf(item.value);
    const known = node && met.get(node);
    if (node === undefined) {
      const split = isSplit(item.value);
      yield { kind: split ? 'container' : 'value', path, item };
      if (split) push(partItems(item), next, path, depth);
    } else if (known !== undefined && (known.times >= places || isInside(node, next))) {
      yield { kind: 'again', path, item, node, first: known.first };
    } else {
      const label = depth < deepestPath ? undefined : `@${++count}`;
      if (label !== undefined) yield { kind: 'label', path, label, node };
      const prefix = label ?? path;
      met.set(node, { first: known?.first ?? prefix, times: (known?.times ?? 0) + 1 });
      yield { kind: 'config', path: prefix, item, node, text: kindText(node, labels) };
      push(fieldItems(node, item, hideDefaults), next, prefix, label === undefined ? depth : 0);
    }
  }
}

/** Whether `node` stands in itself. */
function isInside(node: ConfigNode, { around }: Open): boolean {
  for (let at = around; at !== undefined; at = at.around) if (nodeOf(at.item.value) === node) return true;
  return false;
}

/** A path as it is shown. */
export function pathText(path: string): string {
  return path === '' ? '<root>' : path;
}

/** The class of a config, and what it builds where that is not an instance. */
export function kindText(node: ConfigNode, labels: ClassLabels): string {
  const name = labels.of(node.info);
  return node.kind === 'config' ? name : `${name} (${node.kind})`;
}

/** What the line shows behind the path. */
export function valueText(line: Exclude<Line, { kind: 'label' }>): string {
  if (line.kind === 'config') return line.text;
  if (line.kind === 'again') return `same as ${pathText(line.first)}`;
  return leafText(line.item);
}

/** Whether the item is a field without a value that needs none. */
export function isOptional(item: Item): boolean {
  return item.state === 'default' && item.value === undefined;
}

/** A value without configs. */
export function leafText(item: Item): string {
  if (isOptional(item)) return '<not set, optional>';
  return item.state === 'unset' ? '<not set>' : oneLine(showLong(item.value));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a line must not hold.
const unprintable = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;

const hasUnprintable = new RegExp(unprintable.source);

const short: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** The text with line breaks and other control characters written as escapes. */
export function oneLine(text: string): string {
  if (!hasUnprintable.test(text)) return text;
  return text.replace(unprintable, (c) => short[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Whether a value was written, fills in as a default, or is missing. */
type State = 'set' | 'default' | 'unset';

/** One value and where it stands. */
export interface Item {
  /** The step that leads here; undefined for the root. */
  readonly segment: Segment | undefined;
  readonly value: unknown;
  readonly state: State;
  /** The config and field that hold the value; the same for all parts of a field's container. */
  readonly owner: ConfigNode | undefined;
  readonly field: FieldInfo | undefined;
  /** Whether the value is all that the field holds, not a part of it. */
  readonly whole: boolean;
  readonly schema: z.ZodType | undefined;
  /** The tags of the field where the value is all that it holds, or those of the part. */
  readonly tags: readonly Tag[];
  /** How many containers are around the value. */
  readonly nesting: number;
}

/** The item to begin with. */
export function rootItem(value: unknown): Item {
  return carried({
    segment: undefined,
    value,
    state: 'set',
    owner: undefined,
    field: undefined,
    whole: false,
    schema: undefined,
    tags: [],
    nesting: 0,
  });
}

/** The fields of the config that stands in `item`; with `hideDefaults`, those that nobody set are left out. */
export function fieldItems(node: ConfigNode, item: Item, hideDefaults: boolean): Item[] {
  const items: Item[] = [];
  for (const field of node.info.fields.values()) {
    const state = stateOf(node, field, item);
    if (state === 'default' && hideDefaults) continue;
    items.push({
      segment: field.name,
      value: state === 'unset' ? undefined : rawValue(node, field),
      state,
      owner: node,
      field,
      whole: true,
      schema: field.check,
      tags: fieldTags(node, field),
      nesting: 0,
    });
  }
  return items;
}

function stateOf(node: ConfigNode, field: FieldInfo, around: Item): State {
  if (!hasValue(node, field)) return 'unset';
  // A default config that nobody edited is a default throughout, whatever its maker wrote to it.
  return around.state !== 'default' && isExplicit(node, field.name) ? 'set' : 'default';
}

/** Whether the parts of the value are shown one by one: there is a config among them. */
export function isSplit(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return nodeOf(value) === undefined && partsOf(value) !== undefined && holdsConfig(value);
}

/** The parts of the container that stands in `item`. */
export function partItems(item: Item): Item[] {
  const nesting = deeper(item.nesting);
  return partsOf(item.value)!.map(([segment, value]) =>
    carried({
      ...item,
      segment,
      value,
      whole: false,
      tags: [],
      schema: item.schema && partSchema(item.schema, typeof segment === 'object' ? segment.key : segment),
      nesting,
    }),
  );
}

/** The item with what a carrier of tags stands for in the place of the carrier. */
function carried(item: Item): Item {
  const carrier = carrierOf(item.value);
  if (carrier === undefined) return item;
  return {
    ...item,
    value: carriedBy(carrier),
    state: hasCarried(carrier) ? item.state : 'unset',
    tags: carrierTags(carrier),
    nesting: deeper(item.nesting),
  };
}

function holdsConfig(value: unknown): boolean {
  const seen = new Set<unknown>();
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (nodeOf(next) !== undefined) return true;
    if (seen.has(next)) continue;
    const parts = partsOf(next);
    if (parts === undefined) continue;
    seen.add(next);
    for (const [, part] of parts) open.push(part);
  }
  return false;
}
