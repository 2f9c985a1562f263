/** @file Copies of configs, shallow and deep. */

import { isCarrier } from '../nodes/carriers.js';
import { proxyFor } from '../nodes/config.js';
import { mapContainers } from '../nodes/containers.js';
import {
  ConfigNode,
  isExplicit,
  type NodeKind,
  nodeOf,
  rawValue,
  requireNode,
  setCarrierCopier,
  setDefaultCopier,
} from '../nodes/node.js';
import type { AnyConfig } from '../types.js';
import { walk } from '../walking/traverse.js';

/** A config with the same values: sub-configs are shared with the original, arrays and records are not. */
export function copy<C extends AnyConfig>(config: C): C {
  return copyAlone(requireNode(config, 'copy')).proxy as C;
}

/** A copy that shares the configs it holds; carriers are parts of containers, which it has for itself. */
export function copyAlone(node: ConfigNode): ConfigNode {
  return copyNode(node, (held) => (isCarrier(held) ? copyAlone(held) : held));
}

/** A config that shares nothing with the original; what was shared inside it is shared inside the copy. */
export function deepCopy<C extends AnyConfig>(config: C): C {
  requireNode(config, 'deepCopy');
  return deepCopyOf(config) as C;
}

/** A copy of any value: of the configs in it, and of the containers. */
export function deepCopyOf(value: unknown): unknown {
  const copies = new Map<unknown, unknown>();
  const swap = (held: ConfigNode): ConfigNode => (copies.get(held) as ConfigNode | undefined) ?? held;
  walk(value, { leave: (node) => copyNode(node, swap), results: copies });
  return swapConfigs(value, swap);
}

/** A copy of a value, if it is a container, that holds what `swap` gives for each config. */
function swapConfigs(value: unknown, swap: (held: ConfigNode) => ConfigNode): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const held = nodeOf(value);
  if (held !== undefined) return swap(held).proxy;
  return mapContainers(value, (leaf) => {
    const inner = nodeOf(leaf);
    return inner === undefined ? leaf : swap(inner).proxy;
  });
}

/** A copy of one node, which may be of another kind, that holds what `swap` gives for each config held. */
export function copyNode(
  node: ConfigNode,
  swap: (held: ConfigNode) => ConfigNode,
  kind: NodeKind = node.kind,
): ConfigNode {
  const made = new ConfigNode(node.info, kind);
  for (const name in node.values) {
    made.values[name] = swapConfigs(rawValue(node, node.info.fields.get(name)!), swap);
  }
  if (node.defaults !== undefined) copyDefaults(node, made, node.defaults, swap);
  if (node.containers !== undefined) copyDefaults(node, made, node.containers, swap);
  made.tags = node.tags;
  made.last = node.last;
  made.writes = node.writes;
  proxyFor(made);
  return made;
}

/** Makes explicit in a copy the defaults of the original that were edited. */
function copyDefaults(
  node: ConfigNode,
  made: ConfigNode,
  handedOut: ReadonlyMap<string, unknown>,
  swap: (held: ConfigNode) => ConfigNode,
): void {
  for (const name of handedOut.keys()) {
    // A default nobody edited is made anew, so that a copy does not depend on what was read before.
    if (name in made.values || !isExplicit(node, name)) continue;
    made.values[name] = swapConfigs(rawValue(node, node.info.fields.get(name)!), (held) => {
      const swapped = swap(held);
      // An edited default that is shared with the copy stands in two places from here on.
      if (swapped === held) held.writesAtBirth = -1;
      return swapped;
    });
  }
}

setDefaultCopier(deepCopyOf);
setCarrierCopier(copyAlone);
