/** @file Copies of configs and of what holds them: one node alone, or all that can be reached. */
import { walk } from '../walking/walk.js';
import { isCarrier } from './carriers.js';
import { ConfigNode, type NodeKind, nodeOf } from './configNode.js';
import { mapContainers } from './containers.js';
import { heldNames, heldValue, isExplicit, nodesIn } from './held.js';

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
  const made = new ConfigNode(node.info, kind, node.handler);
  for (const name of heldNames(node)) {
    // A default nobody edited is made anew, so that a copy does not depend on what was read before.
    if (!isExplicit(node, name)) continue;
    const value = heldValue(node, name);
    made.values[name] = swapConfigs(value, swap);
    if (name in node.values) continue;
    // An edited default that is shared with the copy stands in two places from here on.
    for (const held of nodesIn(value)) if (swap(held) === held) held.writesAtBirth = -1;
  }
  made.tags = node.tags;
  made.last = node.last;
  made.writes = node.writes;
  return made;
}
