/** @file The configs that code must write out, with the fields to state and how often each config is used. */

import type { FieldInfo } from '../fields/fields.js';
import { append } from '../nodes/containers.js';
import { type ConfigNode, collectNodes, isPristine, rawValue } from '../nodes/node.js';
import type { PathLink } from '../walking/paths.js';
import { type Edge, edgesIn, walk } from '../walking/traverse.js';

/** A config to write out. */
export interface Item {
  readonly node: ConfigNode;
  readonly path: PathLink | undefined;
  /** The fields whose values are stated; the others show their defaults. */
  readonly fields: readonly FieldInfo[];
  /** In how many places it stands. */
  uses: number;
}

/**
 * The configs in `root`, which stands at `at`, inner before outer, each once.
 *
 * @throws ConfigError for a config that contains itself.
 */
export function itemsIn(root: unknown, at?: PathLink): Map<ConfigNode, Item> {
  const isStated = statedIn(root);
  const items = new Map<ConfigNode, Item>();
  const uses = new Map<ConfigNode, number>();
  const count = (edges: Edge[]): Edge[] => {
    for (const { node } of edges) uses.set(node, (uses.get(node) ?? 0) + 1);
    return edges;
  };
  count(edgesIn(root, at));
  const fieldsOf = (node: ConfigNode): FieldInfo[] =>
    [...node.info.fields.values()].filter((field) => isStated(node, field));
  walk(root, {
    at,
    children: (node, path) => count(edgesOf(node, path, fieldsOf(node))),
    leave: (node, path) => items.set(node, { node, path, fields: fieldsOf(node), uses: 0 }),
  });
  for (const item of items.values()) item.uses = uses.get(item.node)!;
  return items;
}

function edgesOf(node: ConfigNode, path: PathLink | undefined, fields: readonly FieldInfo[]): Edge[] {
  const edges: Edge[] = [];
  for (const field of fields) {
    const value = rawValue(node, field);
    if (typeof value === 'object' && value !== null)
      edgesIn(value, { parent: path, segment: field.name }, edges);
  }
  return edges;
}

/** The value that stands in the field, if it is there without being made. */
function presentValue(node: ConfigNode, name: string): unknown {
  return name in node.values ? node.values[name] : (node.defaults?.get(name) ?? node.containers?.get(name));
}

function presentNodes(node: ConfigNode): ConfigNode[] {
  const nodes: ConfigNode[] = [];
  for (const name of node.info.fields.keys()) collectNodes(presentValue(node, name), nodes);
  return nodes;
}

/**
 * Which fields to state: those that were set, whose default was edited, or whose default is used elsewhere as well, for
 * a default made anew would not be shared.
 */
function statedIn(root: unknown): (node: ConfigNode, field: FieldInfo) => boolean {
  const incoming = new Map<ConfigNode, number>();
  const count = (nodes: ConfigNode[]): void => {
    for (const node of nodes) incoming.set(node, (incoming.get(node) ?? 0) + 1);
  };
  count(edgesIn(root, undefined).map(({ node }) => node));
  walk(root, {
    children: (node) => {
      const present = presentNodes(node);
      count(present);
      return present.map((held) => ({ node: held, path: undefined }));
    },
  });
  return (node, field) => {
    if (field.name in node.values) return true;
    const present = presentValue(node, field.name);
    return typeof present === 'object' && present !== null && isChanged(present);
  };
  function isChanged(present: object): boolean {
    const held: ConfigNode[] = [];
    collectNodes(present, held);
    return held.some(({ proxy }) => !isPristine(proxy)) || !isPrivate(held, incoming);
  }
}

/** Whether all that `roots` lead to is reached through them alone. */
function isPrivate(roots: ConfigNode[], incoming: ReadonlyMap<ConfigNode, number>): boolean {
  const reached = new Map<ConfigNode, number>();
  const open = [...roots];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const times = reached.get(node) ?? 0;
    reached.set(node, times + 1);
    if (times === 0) append(open, presentNodes(node));
  }
  return [...reached].every(([node, times]) => incoming.get(node) === times);
}
