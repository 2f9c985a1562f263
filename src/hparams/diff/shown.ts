/** @file Which parts of a config a diff looks at: what was set, and defaults that someone has looked at. */
import type { FieldInfo } from '../fields/fields.js';
import type { ConfigNode } from '../nodes/node.js';
import type { PathLink } from '../walking/paths.js';
import { type Edge, HeldEdges, type Source } from '../walking/traverse.js';

/** Whether the field has a value of its own, if only a default that was handed out, which may stand elsewhere too. */
export function isTouched(node: ConfigNode, name: string): boolean {
  return name in node.values || node.defaults?.has(name) === true || node.containers?.has(name) === true;
}

/** The configs that `node` holds in fields that were touched. */
export function shownEdges(node: ConfigNode, path: PathLink | undefined): Source<Edge> {
  return new HeldEdges(node, path, isShown, true);
}

function isShown(node: ConfigNode, field: FieldInfo): boolean {
  return isTouched(node, field.name);
}
