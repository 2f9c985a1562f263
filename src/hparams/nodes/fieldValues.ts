/** @file Copies of configs, and defaults of fields, made on first use. */
import { ConfigError } from '../errors.js';
import type { FieldInfo } from '../fields/fields.js';
import { walk } from '../walking/walk.js';
import { isCarrier } from './carriers.js';
import { ConfigNode, nodeOf } from './configNode.js';
import { mapContainers } from './containers.js';
import { heldValue, isExplicit, makeExplicit, nodesIn } from './held.js';

/** Gives the replacement of a config in a copy. */
export type Swap = (held: ConfigNode) => ConfigNode;

/** A copy that shares the configs it holds; carriers are parts of containers, which it has for itself. */
export function copyAlone(node: ConfigNode): ConfigNode {
  return copyNode(node, (held) => (isCarrier(held) ? copyAlone(held) : held));
}

/**
 * A deep copy of any value, with its configs and containers. Sharing is kept. `copies` maps configs to their copies,
 * given and made.
 */
export function deepCopyOf(value: unknown, copies = new Map<unknown, unknown>()): unknown {
  const swap: Swap = (held) => copies.get(held) as ConfigNode;
  walk(value, { leave: (node) => copyNode(node, swap), results: copies });
  return swapConfigs(value, swap);
}

/** A copy of the containers in a value; `swap` replaces each config. */
export function swapConfigs(value: unknown, swap: Swap): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return mapContainers(value, (leaf) => {
    const held = nodeOf(leaf);
    return held === undefined ? leaf : swap(held).proxy;
  });
}

/** A copy of one node, possibly of another kind; `swap` replaces each config in it. */
export function copyNode(node: ConfigNode, swap: Swap, kind = node.kind): ConfigNode {
  const made = unfilledCopy(node, kind);
  fillCopy(made, node, swap);
  return made;
}

/** A copy without values: `fill`, or else the caller, gives it those of `node`. */
export function unfilledCopy(node: ConfigNode, kind = node.kind, fill?: ConfigNode['fill']): ConfigNode {
  const made = new ConfigNode(node.info, kind, node.handler);
  made.changedClass = node.changedClass;
  made.tags = node.tags;
  made.last = node.last;
  made.writes = node.writes;
  made.fill = fill;
  return made;
}

/** Gives a copy the values of `node`; `swap` replaces each config in them. */
export function fillCopy(made: ConfigNode, node: ConfigNode, swap: Swap): void {
  for (const name of Object.keys(node.values)) holdSwapped(made, name, node.values[name], swap);
  // An unedited default is made again, so that copies do not depend on earlier reads.
  for (const [name, value] of node.defaults ?? [])
    if (!(name in node.values) && isExplicit(node, name)) holdSwapped(made, name, value, swap);
}

/** Makes `value` explicit in `node`; `swap` replaces each config in it. */
export function holdSwapped(node: ConfigNode, name: string, value: unknown, swap: Swap): void {
  node.values[name] = swapConfigs(value, (held) => {
    const own = swap(held);
    // A default that another config shares from here on is in two places.
    makeExplicit([own]);
    return own;
  });
}

/** The stored value of the field, explicit or default, for readers that edit nothing in place. */
export function rawValue(node: ConfigNode, field: FieldInfo): unknown {
  return readValue(node, field, false);
}

/** Like `rawValue`, for those who may edit a default that is a container: the node keeps it. */
export function storedValue(node: ConfigNode, field: FieldInfo): unknown {
  return readValue(node, field, true);
}

function readValue(node: ConfigNode, field: FieldInfo, isEditable: boolean): unknown {
  const held = heldValue(node, field.name);
  if (held !== undefined || field.name in node.values || field.default.kind === 'none') return held;
  const made = field.default.make();
  if (typeof made !== 'object' || made === null) return made;
  // Unedited containers without configs are interchangeable.
  return isEditable || nodesIn(made).length > 0 ? keepDefault(node, field, made) : made;
}

const deepestDefaults = 200;

/** Keeps a copy as the default of this node alone: the class's value may be used elsewhere. */
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
    },
  });
  (node.defaults ??= new Map()).set(field.name, own);
  return own;
}
