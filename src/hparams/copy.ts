/** @file Copies of configs, shallow and deep. */
import { proxyFor } from './config.js';
import { mapContainers } from './containers.js';
import { ConfigNode, isPristine, nodeOf, requireNode, setDefaultCopier } from './node.js';
import { edgesOf, walk } from './traverse.js';
import type { AnyConfig } from './types.js';

/** A config with the same values: sub-configs are shared with the original, arrays and records are not. */
export function copy<C extends AnyConfig>(config: C): C {
  return copyNode(requireNode(config, 'copy'), (held) => held).proxy as C;
}

/** A config that shares nothing with the original; what was shared inside it is shared inside the copy. */
export function deepCopy<C extends AnyConfig>(config: C): C {
  const copies = new Map<ConfigNode, ConfigNode>();
  walk(config, {
    children: (node, path) => edgesOf(node, path),
    leave: (node) =>
      copies.set(
        node,
        copyNode(node, (held) => copies.get(held) ?? held),
      ),
  });
  return copies.get(requireNode(config, 'deepCopy'))!.proxy as C;
}

function copyNode(node: ConfigNode, swap: (held: ConfigNode) => ConfigNode): ConfigNode {
  const made = new ConfigNode(node.info, node.kind);
  const swapLeaf = (leaf: unknown): unknown => {
    const held = nodeOf(leaf);
    return held === undefined ? leaf : swap(held).proxy;
  };
  for (const name in node.values) made.values[name] = mapContainers(node.values[name], swapLeaf);
  for (const [name, config] of node.defaults ?? []) {
    // A default nobody edited is made anew, so that a copy does not depend on what was read before.
    if (!(name in node.values) && !isPristine(config)) made.values[name] = swapLeaf(config);
  }
  made.tags = node.tags;
  made.last = node.last;
  made.writes = node.writes;
  proxyFor(made);
  return made;
}

setDefaultCopier(deepCopy);
