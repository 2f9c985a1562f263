/** @file Copies of configs, and defaults of fields, made on first use. */
import { ConfigError } from '../errors.js';
import type { FieldInfo } from '../fields/fields.js';
import { walk } from '../walking/walk.js';
import { isCarrier } from './carriers.js';
import { ConfigNode, type NodeKind, nodeOf } from './configNode.js';
import { mapContainers } from './containers.js';
import { assertOpen, heldValue, isExplicit, makeExplicit, nodesIn } from './held.js';

/** What stands in a copy for a config. */
export type Swap = (held: ConfigNode) => ConfigNode;

/** A copy that shares the configs it holds; carriers are parts of containers, which it has for itself. */
export function copyAlone(node: ConfigNode): ConfigNode {
  return copyNode(node, (held) => (isCarrier(held) ? copyAlone(held) : held));
}

/**
 * A copy of any value: of the configs in it, and of the containers. What was shared is shared in the copy. `copies` holds
 * what some configs became before, and what all have become.
 */
export function deepCopyOf(value: unknown, copies = new Map<unknown, unknown>()): unknown {
  const swap: Swap = (held) => copies.get(held) as ConfigNode;
  walk(value, { leave: (node) => copyNode(node, swap), results: copies });
  return swapConfigs(value, swap);
}

/** A copy of the containers in a value that holds what `swap` gives for each config. */
export function swapConfigs(value: unknown, swap: Swap): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return mapContainers(value, (leaf) => {
    const held = nodeOf(leaf);
    return held === undefined ? leaf : swap(held).proxy;
  });
}

/** A copy of one node, which may be of another kind, that holds what `swap` gives for each config held. */
export function copyNode(node: ConfigNode, swap: Swap, kind: NodeKind = node.kind): ConfigNode {
  return copyFields(node, kind, (made, name, value) => holdSwapped(made, name, value, swap));
}

/** A copy of one node, of which `hold` takes in the values. */
export function copyFields(
  node: ConfigNode,
  kind: NodeKind,
  hold: (made: ConfigNode, name: string, value: unknown) => void,
): ConfigNode {
  const made = new ConfigNode(node.info, kind, node.handler);
  assertOpen(node);
  for (const name of Object.keys(node.values)) hold(made, name, node.values[name]);
  // A default nobody edited is made anew, so that a copy does not depend on what was read before.
  for (const [name, value] of node.defaults ?? [])
    if (!(name in node.values) && isExplicit(node, name)) hold(made, name, value);
  made.changedClass = node.changedClass;
  made.tags = node.tags;
  made.last = node.last;
  made.writes = node.writes;
  return made;
}

/** Makes `value` explicit in `node`, with what `swap` gives for each config in it. */
export function holdSwapped(node: ConfigNode, name: string, value: unknown, swap: Swap): void {
  node.values[name] = swapConfigs(value, (held) => {
    const own = swap(held);
    // A default that another config shares from here on stands in two places.
    makeExplicit([own]);
    return own;
  });
}

/** What stands in the field, explicit or default, as it is stored: for those who look, and edit nothing in place. */
export function rawValue(node: ConfigNode, field: FieldInfo): unknown {
  return readValue(node, field, false);
}

/** Like `rawValue`, for those who may edit a default that is a container: the node keeps it. */
export function storedValue(node: ConfigNode, field: FieldInfo): unknown {
  return readValue(node, field, true);
}

function readValue(node: ConfigNode, field: FieldInfo, isEditable: boolean): unknown {
  assertOpen(node);
  const held = heldValue(node, field.name);
  if (held !== undefined || field.name in node.values || field.default.kind === 'none') return held;
  const made = field.default.make();
  if (typeof made !== 'object' || made === null) return made;
  // Of a container without configs, one is as good as another as long as nobody edits it.
  return isEditable || nodesIn(made).length > 0 ? keepDefault(node, field, made) : made;
}

const deepestDefaults = 200;

/** Keeps a copy as the default of this one node: what the class gives may be in use elsewhere, where no edit may show. */
function keepDefault(node: ConfigNode, field: FieldInfo, made: object): unknown {
  if (node.defaultDepth >= deepestDefaults) {
    throw new ConfigError(
      `The default of ${node.info.name}.${field.name} contains itself without end. Make the field optional, or give it another default.`,
      { path: field.name },
    );
  }
  const own = deepCopyOf(made);
  walk(own, {
    enter(held) {
      held.writesAtBirth = held.writes;
      held.defaultDepth = node.defaultDepth + 1;
      held.defaultOf = node;
      node.draft?.addDefault(held, node);
    },
  });
  (node.defaults ??= new Map()).set(field.name, own);
  return own;
}
