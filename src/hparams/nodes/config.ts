/** @file The proxy that users hold, which reads and writes a node's fields like plain properties. */
import { inspect } from 'node:util';
import type { ClassInfo } from '../fields/fields.js';
import type { AnyConfig } from '../types.js';
import { heldValue } from './held.js';
import {
  ConfigNode,
  deleteField,
  fieldOf,
  hasValue,
  isExplicit,
  NODE,
  type NodeKind,
  nodeOf,
  requireConcrete,
  writeField,
} from './node.js';
import { readField } from './reading.js';
import { givenOrigin, origin } from './record.js';

// Read by printers, test runners and promises from any object; a config answers "not there" instead of failing.
const probed = new Set([
  'then',
  'toJSON',
  'asymmetricMatch',
  'nodeType',
  'tagName',
  'inspect',
  'length',
  'size',
  '$$typeof',
]);

const handler: ProxyHandler<ConfigNode> = {
  get(node, key) {
    if (typeof key === 'symbol') return readSymbol(node, key);
    const field = node.info.fields.get(key);
    if (field !== undefined) return readField(node, field);
    if (key === 'toJSON') return jsonOf && (() => jsonOf!(node.proxy));
    if (key in Object.prototype) return (Object.prototype as unknown as Record<string, unknown>)[key];
    if (probed.has(key) || key.startsWith('@@') || key.startsWith('_')) return undefined;
    return fieldOf(node, key, origin());
  },
  set(node, key, value) {
    const given = givenOrigin();
    if (given !== undefined) {
      writeField(node, String(key), value, given);
      return true;
    }
    // Inlined captureTrace, for this frame and its caller, or Object.assign and its caller: each frame costs as much as
    // all the rest of the write.
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 3;
    const trace = new Error();
    Error.stackTraceLimit = limit;
    writeField(node, String(key), value, trace);
    return true;
  },
  deleteProperty(node, key) {
    deleteField(node, String(key), origin());
    return true;
  },
  has: (node, key) => typeof key === 'string' && node.info.fields.has(key),
  ownKeys: (node) =>
    [...node.info.fields.values()].flatMap((field) => (hasValue(node, field) ? field.name : [])),
  getOwnPropertyDescriptor(node, key) {
    const field = typeof key === 'string' ? node.info.fields.get(key) : undefined;
    if (field === undefined || !hasValue(node, field)) return undefined;
    return { configurable: true, enumerable: true, writable: true, value: readField(node, field) };
  },
  defineProperty(node, key, descriptor) {
    if (!('value' in descriptor)) return false;
    writeField(node, String(key), descriptor.value, origin());
    return true;
  },
  setPrototypeOf: () => false,
  preventExtensions: () => false,
};

function readSymbol(node: ConfigNode, key: symbol): unknown {
  if (key === NODE) return node;
  if (key === Symbol.toStringTag) return `${node.info.name} ${node.kind}`;
  return undefined;
}

let jsonOf: ((config: AnyConfig) => unknown) | undefined;

/** Sets the result of JSON.stringify for configs. */
export function setJsonForm(form: (config: AnyConfig) => unknown): void {
  jsonOf = form;
}

// console.log and assertion messages show explicit values instead of the proxy's internals.
Object.defineProperty(ConfigNode.prototype, inspect.custom, {
  value(this: unknown, depth: number, options: object) {
    const node = nodeOf(this);
    if (node === undefined) return 'ConfigNode';
    const shown = Object.fromEntries(
      [...node.info.fields.keys()].flatMap((name) => {
        return isExplicit(node, name) ? [[name, heldValue(node, name)]] : [];
      }),
    );
    return depth < 0 ? `[${node.info.name}]` : `${node.info.name} ${inspect(shown, options)}`;
  },
});

/** A new, empty node. */
export function newNode(info: ClassInfo, kind: NodeKind): ConfigNode {
  return new ConfigNode(info, kind, handler);
}

/** A new, empty config. @throws ConfigError for an abstract class. */
export function newConfig(info: ClassInfo, kind: NodeKind): AnyConfig {
  requireConcrete(info);
  return newNode(info, kind).proxy;
}
