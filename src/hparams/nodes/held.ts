/** @file Values that fields hold already: explicit ones, and defaults that were handed out. */
import type { FieldInfo } from '../fields/fields.js';
import { type ConfigNode, nodeOf } from './configNode.js';
import { partsOf } from './containers.js';

/** Whether the field has a value, be it a default. */
export function hasValue(node: ConfigNode, field: FieldInfo): boolean {
  return field.name in node.values || field.default.kind !== 'none';
}

/** Whether the field was set, or its default config was edited. */
export function isExplicit(node: ConfigNode, name: string): boolean {
  if (name in node.values) return true;
  const handedOut = node.defaults?.get(name);
  return handedOut !== undefined && !isPristine(handedOut);
}

/** Whether the configs in a default, and all they hold, are as their classes made them. */
export function isPristine(value: unknown): boolean {
  const nodes = new Set(nodesIn(value));
  for (const node of nodes) {
    if (node.writesAtBirth !== node.writes) return false;
    for (const name of heldNames(node)) for (const held of nodesIn(heldValue(node, name))) nodes.add(held);
  }
  return true;
}

/** A default that is used elsewhere, too, becomes explicit: copies and documents must keep both places. */
export function makeExplicit(nodes: readonly ConfigNode[]): void {
  for (const node of nodes) node.writesAtBirth = -1;
}

/** The fields that hold something: explicit values first, then the defaults that were handed out. */
export function heldNames(node: ConfigNode): string[] {
  const names = Object.keys(node.values);
  for (const name of node.defaults?.keys() ?? []) if (!(name in node.values)) names.push(name);
  return names;
}

/** The field's value, explicit or a default that was read; else undefined. */
export function heldValue(node: ConfigNode, name: string): unknown {
  return name in node.values ? node.values[name] : node.defaults?.get(name);
}

/** Like `heldValue`, of a field. */
export function touchedValue(node: ConfigNode, { name }: FieldInfo): unknown {
  return heldValue(node, name);
}

/** The field's explicit value, or its edited default; else undefined. */
export function explicitValue(node: ConfigNode, { name }: FieldInfo): unknown {
  return isExplicit(node, name) ? heldValue(node, name) : undefined;
}

/** Adds the nodes of the configs in `value` to `into`. */
function collectNodes(value: unknown, into: ConfigNode[]): void {
  if (typeof value !== 'object' || value === null) return;
  const node = nodeOf(value);
  if (node !== undefined) into.push(node);
  else for (const [, part] of partsOf(value) ?? []) collectNodes(part, into);
}

/** The nodes of the configs in a value, those that they hold not among them. */
export function nodesIn(value: unknown): ConfigNode[] {
  const nodes: ConfigNode[] = [];
  collectNodes(value, nodes);
  return nodes;
}

/** The nodes of the configs that `node` holds in explicit values and edited defaults. */
export function nodesHeld(node: ConfigNode): ConfigNode[] {
  const nodes: ConfigNode[] = [];
  for (const field of node.info.partedFields) collectNodes(explicitValue(node, field), nodes);
  return nodes;
}
