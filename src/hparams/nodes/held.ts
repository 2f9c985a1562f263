/** @file What a config's fields hold: explicit values, and defaults, which are made when they are first asked for. */

import { ConfigError } from '../errors.js';
import type { FieldInfo } from '../fields/fields.js';
import type { AnyConfig } from '../types.js';
import { carrierOf } from './carriers.js';
import { ConfigNode, Defaults, nodeOf, present, seenFrom } from './configNode.js';
import { append, isContainer, mapContainers, partsOf } from './containers.js';

/** @throws ConfigError for a draft whose derive has ended. */
export function assertOpen(node: ConfigNode): void {
  if (node.draft?.session.closed === true) throw usedLate(node);
}

/** The error of whoever still uses a draft. */
export function usedLate(node: ConfigNode): ConfigError {
  return new ConfigError(`This draft of ${node.info.name} was used after its derive() had ended.`);
}

/** Whether the field was set, or its default config was edited. */
export function isExplicit(node: ConfigNode, name: string): boolean {
  assertOpen(node);
  if (name in node.values) return true;
  const handedOut = node.defaults?.get(name) ?? node.containers?.get(name);
  return handedOut !== undefined && !arePristine(nodesSeen(node, handedOut));
}

/** Whether a default config, and all it holds, is as its class made it. Iterative, for defaults nest. */
export function isPristine(config: AnyConfig): boolean {
  return arePristine([nodeOf(config)!]);
}

function arePristine(open: ConfigNode[]): boolean {
  const seen = new Set<ConfigNode>();
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    if (node.writesAtBirth !== node.writes) return false;
    for (const child of heldNodes(node)) open.push(child);
  }
  return true;
}

/** The nodes of the configs that `node` holds, explicit values first, then the defaults that were handed out. */
function heldNodes(node: ConfigNode): ConfigNode[] {
  const held: ConfigNode[] = [];
  for (const name in node.values) append(held, nodesSeen(node, node.values[name]));
  for (const handedOut of [node.containers, node.defaults]) {
    for (const [name, value] of handedOut ?? [])
      if (!(name in node.values)) append(held, nodesSeen(node, value));
  }
  return held;
}

/** The nodes of the configs in one of the values of `node`: drafts, where `node` is one. */
function nodesSeen(node: ConfigNode, value: unknown): ConfigNode[] {
  const nodes = nodesIn(value);
  return node.draft === undefined ? nodes : nodes.map((held) => seenFrom(node, held));
}

/** Adds the nodes of the configs in `value` to `into`. */
export function collectNodes(value: unknown, into: ConfigNode[]): void {
  if (typeof value !== 'object' || value === null) return;
  const node = nodeOf(value);
  if (node !== undefined) into.push(node);
  else for (const [, part] of partsOf(value) ?? []) collectNodes(part, into);
}

/** Whether the field has a value, be it a default. */
export function hasValue(node: ConfigNode, field: FieldInfo): boolean {
  return field.name in node.values || field.default.kind !== 'none';
}

/** What stands in the field, explicit or default, as it is stored: containers are not views. */
export function rawValue(node: ConfigNode, field: FieldInfo): unknown {
  // Those who only look make no default theirs to keep.
  const plain = node.draft === undefined ? plainDefault(node, field) : notPlain;
  if (plain !== notPlain) return plain;
  const value = storedValue(node, field);
  return node.draft === undefined ? value : presentAll(node, value);
}

/** Whoever goes through a draft must meet drafts: an edit of what they stand for would show in the original. */
function presentAll(node: ConfigNode, value: unknown): unknown {
  return mapContainers(value, (leaf) => present(node, leaf));
}

/** What `plainDefault` gives where there is none. */
export const notPlain: unique symbol = Symbol('luthier.notPlain');

/** The default that the field shows, if it is one that can hold no config, such as null or an empty list: it need not be kept. */
export function plainDefault(node: ConfigNode, field: FieldInfo): unknown {
  const { name, default: given } = field;
  if (given.kind !== 'value' || given.parsed || name in node.values) return notPlain;
  if (node.containers?.has(name) === true) return notPlain;
  const value = given.make();
  return typeof value !== 'object' || value === null || (Array.isArray(value) && value.length === 0)
    ? value
    : notPlain;
}

/** Whether the field shows a default that can hold no config. */
export function isPlainDefault(node: ConfigNode, field: FieldInfo): boolean {
  return plainDefault(node, field) !== notPlain;
}

/**
 * What stands in the field, as the node itself has it: of a draft, not the drafts. Every reading of every field comes
 * here: what needs a closure stands in functions of its own.
 */
export function storedValue(node: ConfigNode, field: FieldInfo): unknown {
  const { name } = field;
  assertOpen(node);
  if (name in node.values) return node.values[name];
  if (field.default.kind === 'none') return undefined;
  const known = node.defaults?.get(name) ?? node.containers?.get(name);
  if (known !== undefined) return known;
  const base = node.draft?.base;
  if (base !== undefined && base !== node && hasDefaultOf(node, base, name)) {
    return borrowDefault(node, name, storedValue(base, field));
  }
  if (field.default.kind === 'config') return defaultConfig(node, field, field.default.make);
  const before = ConfigNode.count;
  const made = field.default.make();
  if (typeof made !== 'object' || made === null) return made;
  return keepDefault(node, field, made, before);
}

/** Keeps a default that can be edited in place; configs that were made since `before` are the default's own. */
function keepDefault(node: ConfigNode, field: FieldInfo, made: object, before: number): unknown {
  if (nodeOf(made) !== undefined) return defaultConfig(node, field, () => made as AnyConfig, before);
  const base = node.draft?.base;
  const kept = mapContainers(ownDefault(made, before), (leaf) => {
    const carrier = carrierOf(leaf);
    return carrier === undefined ? leaf : copyCarrier(carrier).proxy;
  });
  const owner = base === undefined || base === node ? node : null;
  for (const child of nodesIn(kept)) markDefault(child, node, owner);
  (node.containers ??= new Map()).set(field.name, kept);
  return kept;
}

/** Whether a draft's default is still that of its base. */
function hasDefaultOf(draft: ConfigNode, base: ConfigNode, name: string): boolean {
  return draft.info === base.info && draft.draft!.forgotten?.has(name) !== true && !(name in base.values);
}

/** Keeps in a draft what its base has as a default: containers are copied, the configs are the base's. */
function borrowDefault(draft: ConfigNode, name: string, value: unknown): unknown {
  if (nodeOf(value) !== undefined) {
    (draft.defaults ??= new Defaults(null)).set(name, value as AnyConfig);
    return value;
  }
  if (typeof value !== 'object' || value === null) return value;
  const copied = copyContainers(value);
  (draft.containers ??= new Map()).set(name, copied);
  return copied;
}

/** A copy of the arrays and records in `value`, the containers that can be edited in place. */
export function copyContainers(value: unknown): unknown {
  if (!isContainer(value)) return value;
  if (Array.isArray(value)) return value.map(copyContainers);
  const copied: Record<string, unknown> = {};
  for (const key of Object.keys(value)) copied[key] = copyContainers(value[key]);
  return copied;
}

const deepestDefaults = 200;

function defaultConfig(
  node: ConfigNode,
  field: FieldInfo,
  make: () => AnyConfig,
  before = ConfigNode.count,
): AnyConfig {
  if (node.defaultDepth >= deepestDefaults) {
    throw new ConfigError(
      `The default of ${node.info.name}.${field.name} contains itself without end. Make the field optional, or give it another default.`,
      { path: field.name },
    );
  }
  const config = ownDefault(make(), before) as AnyConfig;
  const isDraft = node.draft !== undefined && node.draft.base !== node;
  node.defaults ??= new Defaults(isDraft ? null : node);
  markDefault(nodeOf(config)!, node, node.defaults instanceof Defaults ? node.defaults.owner : null);
  node.defaults.set(field.name, config);
  return config;
}

/** A default whose configs are all new: one that existed before is someone else's, and an edit here must not show there. */
function ownDefault(made: unknown, before: number): unknown {
  const open = nodesIn(made);
  const seen = new Set(open);
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.serial <= before) return copyDefault(made);
    for (const held of heldNodes(node)) {
      if (seen.has(held)) continue;
      seen.add(held);
      open.push(held);
    }
  }
  return made;
}

let copyDefault: (made: unknown) => unknown = (made) => made;

/** Tells this module how to copy configs and containers of configs; called once by the module that copies. */
export function setDefaultCopier(copier: (made: unknown) => unknown): void {
  copyDefault = copier;
}

function nodesIn(value: unknown): ConfigNode[] {
  const nodes: ConfigNode[] = [];
  collectNodes(value, nodes);
  return nodes;
}

function markDefault(root: ConfigNode, parent: ConfigNode, owner: ConfigNode | null): void {
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.writesAtBirth >= 0) continue;
    node.writesAtBirth = node.writes;
    node.defaultDepth = parent.defaultDepth + 1;
    node.defaultOf = owner;
    append(open, heldNodes(node));
  }
}

let copier: (carrier: ConfigNode) => ConfigNode = (carrier) => carrier;

/** Tells this module how to copy a carrier; called once by the module that copies. */
export function setCarrierCopier(copy: (carrier: ConfigNode) => ConfigNode): void {
  copier = copy;
}

/** A carrier like `carrier`, for another place. */
export function copyCarrier(carrier: ConfigNode): ConfigNode {
  return copier(carrier);
}
