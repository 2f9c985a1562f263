/** @file Trimmed configs for display: without defaults, to a depth, without long values. */

import { showLong } from '../fields/describe.js';
import type { ClassInfo, FieldInfo } from '../fields/fields.js';
import { isContainer, mapContainers, partsOf } from '../nodes/containers.js';
import { ConfigNode, deleteField, isExplicit, nodeOf, rawValue, requireNode } from '../nodes/node.js';
import { origin } from '../nodes/record.js';
import type { AnyConfig } from '../types.js';
import { isEqual } from '../walking/equal.js';
import { edgesOf } from '../walking/iterate.js';
import { edgesIn, walk } from '../walking/walk.js';
import { deepCopy } from './edit.js';

/**
 * A deep copy in which every value that equals its default is unset. A sub-config that equals its default goes only where
 * nothing else holds it, or a part of it: the result is equal to the original, with the same sharing.
 */
export function withDefaultsTrimmed<C extends AnyConfig>(config: C): C {
  requireNode(config, 'withDefaultsTrimmed');
  const writer = origin();
  const made = deepCopy(config);
  const references = countReferences(made);
  walk(made, {
    leave(node) {
      for (const field of node.info.fields.values()) {
        if (!isExplicit(node, field.name) || !equalsDefault(node, field)) continue;
        if (isUnshared(rawValue(node, field), references)) deleteField(node, field.name, writer);
      }
    },
  });
  return made;
}

function countReferences(root: unknown): Map<ConfigNode, number> {
  const counts = new Map<ConfigNode, number>();
  const count = (node: ConfigNode): void => void counts.set(node, (counts.get(node) ?? 0) + 1);
  walk(root, { enter: count, again: count });
  return counts;
}

function equalsDefault(node: ConfigNode, field: FieldInfo): boolean {
  if (field.default.kind === 'none') return false;
  const value = rawValue(node, field);
  // Most values that differ do so at once, without making a default config to compare with.
  if (field.default.kind === 'config' && nodeOf(value) === undefined) return false;
  return isEqual(value, field.default.make());
}

/** Whether the configs in `value` are held from inside of it only, and by its own field. */
function isUnshared(value: unknown, references: ReadonlyMap<ConfigNode, number>): boolean {
  const within = countReferences(value);
  for (const [node, count] of within) if (references.get(node) !== count) return false;
  return true;
}

/** Parts that `trimmed` leaves out; all others stay. */
interface TrimOptions {
  /** Configs that are further than this many configs below the root, on the shortest way, are left out. */
  readonly depth?: number;
  /** Configs to leave out. */
  readonly configs?: Iterable<AnyConfig> | ((config: AnyConfig) => boolean);
  /** Keeps only the fields that hold configs. */
  readonly structure?: boolean;
  /** Keeps only these fields, and those that hold configs. */
  readonly fields?: Iterable<string> | ((field: string, config: AnyConfig) => boolean);
  /** Shortens strings, arrays and records whose text is longer than this many letters. */
  readonly longValues?: number;
}

/**
 * A copy to print or to draw, in which less is to be seen: a config that is left out is a bare `…Name`, fields that are
 * left out are gone. Sharing is kept. It cannot be built, and is not equal to the original, which stays as it is.
 */
export function trimmed<C extends AnyConfig>(config: C, options: TrimOptions = {}): AnyConfig {
  const root = requireNode(config, 'trimmed');
  const leftOut = leavesOut(root, options);
  const keeps = fieldFilter(options);
  const limit = options.longValues ?? Number.POSITIVE_INFINITY;
  const done = new Map<ConfigNode, ConfigNode>();
  walk(config, {
    children: (node, path) => (leftOut(node) ? [] : edgesOf(node, path)),
    leave(node) {
      if (leftOut(node)) {
        done.set(node, placeholder(node, `…${node.info.name}`, []));
        return;
      }
      const fields = [...node.info.fields.values()].filter((field) => keeps(node, field));
      const made = placeholder(node, node.info.name, fields);
      for (const field of fields) {
        if (!isExplicit(node, field.name)) continue;
        const swapped = mapContainers(rawValue(node, field), (leaf) => {
          const held = nodeOf(leaf);
          return held === undefined ? leaf : done.get(held)!.proxy;
        });
        made.values[field.name] = shorten(swapped, limit);
      }
      done.set(node, made);
    },
  });
  return done.get(root)!.proxy;
}

function placeholder(node: ConfigNode, name: string, fields: readonly FieldInfo[]): ConfigNode {
  const info: ClassInfo = {
    ...node.info,
    name,
    fields: new Map(fields.map((field) => [field.name, field])),
    unbuildable: 'This config was trimmed for display. Build the original config.',
  };
  const made = new ConfigNode(info, node.kind, node.handler);
  made.last = node.last;
  made.tags = node.tags;
  return made;
}

function leavesOut(root: ConfigNode, options: TrimOptions): (node: ConfigNode) => boolean {
  const { configs } = options;
  const chosen = new Set<ConfigNode>();
  if (typeof configs !== 'function')
    for (const config of configs ?? []) chosen.add(requireNode(config, 'trimmed'));
  const near = options.depth === undefined ? undefined : withinDepth(root, options.depth);
  return (node) => {
    if (node === root) return false;
    if (near?.has(node) === false || chosen.has(node)) return true;
    return typeof configs === 'function' && configs(node.proxy);
  };
}

/** The configs at most `depth` configs below the root, level by level: the shortest way counts. */
function withinDepth(root: ConfigNode, depth: number): Set<ConfigNode> {
  const near = new Set([root]);
  let level = [root];
  for (let i = 0; i < depth && level.length > 0; i += 1) {
    const next: ConfigNode[] = [];
    for (const node of level) {
      for (const edge of edgesOf(node, undefined)) {
        if (near.has(edge.node)) continue;
        near.add(edge.node);
        next.push(edge.node);
      }
    }
    level = next;
  }
  return near;
}

function fieldFilter(options: TrimOptions): (node: ConfigNode, field: FieldInfo) => boolean {
  const { fields, structure } = options;
  if (structure !== true && fields === undefined) return () => true;
  const names = typeof fields === 'function' ? undefined : new Set(fields ?? []);
  return (node, field) => {
    if (names?.has(field.name) === true) return true;
    if (typeof fields === 'function' && fields(field.name, node.proxy)) return true;
    return isExplicit(node, field.name) && edgesIn(rawValue(node, field), undefined).length > 0;
  };
}

/** A value whose text is at most about `limit` letters; configs in it are kept. */
function shorten(value: unknown, limit: number): unknown {
  if (limit === Number.POSITIVE_INFINITY) return value;
  if (typeof value === 'string') return value.length <= limit ? value : `${value.slice(0, limit)}…`;
  const parts = isContainer(value) ? partsOf(value)! : [];
  if (parts.length === 0 || edgesIn(value, undefined).length > 0) return value;
  const kept: (typeof parts)[number][] = [];
  let length = 0;
  for (const part of parts) {
    length += showLong(part[1]).length + 2;
    if (length > limit) break;
    kept.push(part);
  }
  if (kept.length === parts.length) return value;
  const rest = `… ${parts.length - kept.length} more`;
  if (Array.isArray(value)) return [...kept.map(([, part]) => part), rest];
  const entries = kept.map(([segment, part]) => [typeof segment === 'object' ? segment.key : segment, part]);
  return { ...Object.fromEntries(entries), '…': rest };
}
