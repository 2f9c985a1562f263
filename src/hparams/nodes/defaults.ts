/** @file What reading a field gives: its explicit value, or its default, which is made when it is first asked for. */
import { ConfigError } from '../errors.js';
import type { FieldInfo } from '../fields/fields.js';
import { walk } from '../walking/walk.js';
import type { ConfigNode } from './configNode.js';
import { deepCopyOf } from './copying.js';
import { assertOpen, heldValue, nodesIn } from './held.js';

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
