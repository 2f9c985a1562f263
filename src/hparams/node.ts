/** @file A config's node: its class, its explicit values and how they are read, checked, written and recorded. */

import { carriedBy, carrierOf, carrierTags, hasCarried } from './carriers.js';
import { problemOf } from './check.js';
import { ConfigNode, nodeOf, type Origin } from './configNode.js';
import {
  isContainer,
  mapContainers,
  type Owner,
  partsOf,
  shownPart,
  showPart,
  viewOf,
} from './containers.js';
import { handlerOf } from './containerTypes.js';
import { describeSchema, showValue } from './describe.js';
import { ConfigError, NotSetError } from './errors.js';
import type { ClassInfo, FieldInfo } from './fields.js';
import { didYouMean } from './names.js';
import { sortTags, tagsAfter, withFieldTags } from './nodeTags.js';
import { record } from './record.js';
import { captureTrace, placeText } from './source.js';
import type { Tag } from './tags.js';
import type { AnyConfig } from './types.js';

export {
  ConfigNode,
  type Draft,
  NODE,
  type NodeKind,
  nodeOf,
  type Origin,
  type Write,
  type WriteKind,
} from './configNode.js';

/** The node of a config. @throws ConfigError for anything else; `operation` is who was given it. */
export function requireNode(value: unknown, operation: string): ConfigNode {
  const node = nodeOf(value);
  if (node !== undefined) return node;
  throw new ConfigError(`${operation}() takes a config, got ${showValue(value)}.`);
}

let frozenUpTo = -1;

/** While something is built, configs made before must stay as they are: returns what ends that. */
export function freezeExisting(): () => void {
  const before = frozenUpTo;
  frozenUpTo = Math.max(before, ConfigNode.count);
  return () => {
    frozenUpTo = before;
  };
}

function assertWritable(node: ConfigNode, field: string, origin: Origin): void {
  assertOpen(node);
  if (node.serial > frozenUpTo) return;
  throw new ConfigError(
    `${node.info.name}.${field} was written while configs were being built. ` +
      'Build from an edited copy instead: derive(config, (draft) => …).',
    { place: presentPlace(origin), path: field },
  );
}

function assertOpen(node: ConfigNode): void {
  if (node.draft?.session.closed === true) {
    throw new ConfigError(`This draft of ${node.info.name} was used after its derive() had ended.`);
  }
}

/** The place of the write under way: its trace may be too short to reach the caller, but the stack still stands. */
function presentPlace(origin: Origin): string | undefined {
  return originText(origin) ?? placeText(captureTrace());
}

/** `file:line`, or the flag's text. */
export function originText(origin: Origin): string | undefined {
  return typeof origin === 'string' ? origin : placeText(origin);
}

/** The field `name`, or an error that suggests one. */
export function fieldOf(node: ConfigNode, name: string, origin: Origin): FieldInfo {
  const field = node.info.fields.get(name);
  if (field !== undefined) return field;
  const names = [...node.info.fields.keys()];
  const isMember = name in (node.info.cls.prototype as object);
  const hint = isMember
    ? ` ${node.info.name} has a member of that name: was build(config) forgotten?`
    : didYouMean(name, names) || (names.length === 0 ? ' It has none.' : ` It has ${names.join(', ')}.`);
  throw new ConfigError(`${node.info.name} has no hyperparameter '${name}'.${hint}`, {
    path: name,
    place: presentPlace(origin),
  });
}

/** Whether the field was set, or its default config was edited. */
export function isExplicit(node: ConfigNode, name: string): boolean {
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
  for (const name in node.values) held.push(...nodesSeen(node, node.values[name]));
  for (const handedOut of [node.containers, node.defaults]) {
    for (const [name, value] of handedOut ?? [])
      if (!(name in node.values)) held.push(...nodesSeen(node, value));
  }
  return held;
}

/** The nodes of the configs in one of the values of `node`: drafts, where `node` is one. */
function nodesSeen(node: ConfigNode, value: unknown): ConfigNode[] {
  const nodes = nodesIn(value);
  return node.draft === undefined ? nodes : nodes.map((held) => node.draft!.session.draftOf(held));
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
  const value = storedValue(node, field);
  // Whoever goes through a draft must meet drafts: an edit of what they stand for would show in the original.
  return node.draft === undefined ? value : mapContainers(value, (leaf) => present(node, leaf));
}

/** What a leaf of a node's value is to those who read it through that node: a draft's parts are drafts. */
function present(node: ConfigNode, leaf: unknown): unknown {
  const held = node.draft && nodeOf(leaf);
  return held === undefined ? leaf : node.draft!.session.draftOf(held).proxy;
}

function storedValue(node: ConfigNode, field: FieldInfo): unknown {
  const { name } = field;
  if (name in node.values) return node.values[name];
  if (field.default.kind === 'none') return undefined;
  if (field.default.kind === 'config') return defaultConfig(node, field, field.default.make);
  const known = node.containers?.get(name);
  if (known !== undefined) return known;
  const made = field.default.make();
  if (typeof made !== 'object' || made === null) return made;
  if (nodeOf(made) !== undefined) return defaultConfig(node, field, () => made as AnyConfig);
  const kept = mapContainers(made, acceptLeaf);
  for (const child of nodesIn(kept)) markDefault(child, node);
  (node.containers ??= new Map()).set(name, kept);
  return kept;
}

const deepestDefaults = 200;

function defaultConfig(node: ConfigNode, field: FieldInfo, make: () => AnyConfig): AnyConfig {
  const known = node.defaults?.get(field.name);
  if (known !== undefined) return known;
  if (node.defaultDepth >= deepestDefaults) {
    throw new ConfigError(
      `The default of ${node.info.name}.${field.name} contains itself without end. Make the field optional, or give it another default.`,
      { path: field.name },
    );
  }
  const before = ConfigNode.count;
  let config = make();
  // A default that existed before is someone else's object: an edit here must not show there.
  if (nodeOf(config)!.serial <= before) config = copyDefault(config);
  markDefault(nodeOf(config)!, node);
  (node.defaults ??= new Map()).set(field.name, config);
  return config;
}

let copyDefault: (config: AnyConfig) => AnyConfig = (config) => config;

/** Tells this module how to copy a config; called once by the module that copies. */
export function setDefaultCopier(copier: (config: AnyConfig) => AnyConfig): void {
  copyDefault = copier;
}

function nodesIn(value: unknown): ConfigNode[] {
  const nodes: ConfigNode[] = [];
  collectNodes(value, nodes);
  return nodes;
}

function markDefault(root: ConfigNode, parent: ConfigNode): void {
  const open = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.writesAtBirth >= 0) continue;
    node.writesAtBirth = node.writes;
    node.defaultDepth = parent.defaultDepth + 1;
    open.push(...heldNodes(node));
  }
}

/** What reading the field gives. */
export function readField(node: ConfigNode, field: FieldInfo): unknown {
  assertOpen(node);
  if (!(field.name in node.values) && field.default.kind === 'none') {
    throw new NotSetError(
      `${node.info.name}.${field.name} is not set and has no default: expected ${describeSchema(field.check)}.`,
      { path: field.name },
    );
  }
  const value = storedValue(node, field);
  if (typeof value !== 'object' || value === null) return value;
  if (nodeOf(value) !== undefined) return present(node, value);
  if (!isContainer(value)) {
    return handlerOf(value) === undefined ? value : shownPart(value, ownerOf(node, field));
  }
  node.draft?.own(node);
  const own = storedValue(node, field) as object;
  return viewOf(own, () => ownerOf(node, field));
}

let traceOfEdit: () => Origin = () => '';

/** Tells this module how to find who edits a container. */
export function setEditTracer(tracer: () => Origin): void {
  traceOfEdit = tracer;
}

function ownerOf(node: ConfigNode, field: FieldInfo): Owner {
  const owner: Owner = {
    keep: (value) => present(node, value),
    handOut(value, isRemoved) {
      const kept = present(node, value);
      const carrier = carrierOf(kept);
      if (carrier === undefined) return kept;
      if (hasCarried(carrier)) {
        carrier.draft?.own(carrier);
        return showPart(carriedBy(carrier), owner);
      }
      if (isRemoved) return undefined;
      throw new NotSetError(
        `${node.info.name}.${field.name}: the part tagged ${carrierTags(carrier).join(', ')} is not set.`,
        { path: field.name },
      );
    },
    isDraft: node.draft !== undefined,
    takeIn(value, before) {
      const carrier = carrierOf(before);
      if (carrier === undefined) return mapContainers(value, acceptLeaf);
      const next = copyCarrier(carrier);
      writeField(next, 'value', value, traceOfEdit());
      return next.proxy;
    },
    edited() {
      const origin = traceOfEdit();
      assertWritable(node, field.name, origin);
      const root = storedValue(node, field);
      checkValue(node, field, root, origin);
      node.values[field.name] = root;
      node.containers?.delete(field.name);
      record(node, field.name, 'edit', root, origin);
    },
  };
  return owner;
}

/** A leaf as it is stored. A carrier stands in one place only, so that setting it there shows nowhere else. */
function acceptLeaf(value: unknown): unknown {
  const node = nodeOf(value);
  if (node === undefined) return value;
  assertOpen(node);
  // A default that is put elsewhere too is no mere default any more: whoever copies or saves it must see both places.
  if (node.writesAtBirth >= 0) node.writesAtBirth = -1;
  const carrier = carrierOf(value);
  return carrier === undefined ? value : copyCarrier(carrier).proxy;
}

let copyCarrier: (carrier: ConfigNode) => ConfigNode = (carrier) => carrier;

/** Tells this module how to copy a carrier; called once by the module that copies. */
export function setCarrierCopier(copier: (carrier: ConfigNode) => ConfigNode): void {
  copyCarrier = copier;
}

/** Checks and stores a value. A carrier gives the field its value, if it has one, and its tags. */
export function writeField(node: ConfigNode, name: string, value: unknown, origin: Origin): void {
  const field = fieldOf(node, name, origin);
  assertWritable(node, name, origin);
  const carrier = carrierOf(value);
  if (carrier !== undefined) {
    if (hasCarried(carrier)) writeField(node, name, carriedBy(carrier), origin);
    writeTags(node, field, [...fieldTags(node, field), ...carrierTags(carrier)], origin);
    return;
  }
  const stored = typeof value === 'object' && value !== null ? mapContainers(value, acceptLeaf) : value;
  checkValue(node, field, stored, origin);
  node.draft?.own(node);
  node.values[name] = stored;
  record(node, name, 'set', stored, origin);
}

/** Brings the default back. */
export function deleteField(node: ConfigNode, name: string, origin: Origin): void {
  fieldOf(node, name, origin);
  assertWritable(node, name, origin);
  node.draft?.own(node);
  delete node.values[name];
  node.containers?.delete(name);
  if (node.defaults?.has(name) === true) {
    // Derived configs share the map: forgetting a default must not reach them.
    node.defaults = new Map(node.defaults);
    node.defaults.delete(name);
  }
  record(node, name, 'delete', undefined, origin);
}

/** The tags of a field, sorted by name. */
export function fieldTags(node: ConfigNode, field: FieldInfo): readonly Tag[] {
  return tagsAfter(field, node.tags?.get(field.name));
}

/** Makes `wanted` the tags of a field. */
export function writeTags(node: ConfigNode, field: FieldInfo, wanted: Iterable<Tag>, origin: Origin): void {
  assertWritable(node, field.name, origin);
  const tags = Object.freeze(sortTags(wanted));
  node.tags = withFieldTags(node.tags, field, tags);
  record(node, field.name, 'tags', tags, origin);
}

/**
 * Gives a config another class. Explicit values stay: they must be fields of `info` already. Tags of fields that
 * `info` lacks go; defaults are those of `info` from here on, but the edited ones stay as values.
 */
export function setClass(node: ConfigNode, info: ClassInfo, origin: Origin): void {
  assertWritable(node, '', origin);
  for (const handedOut of [node.defaults, node.containers]) {
    for (const [name, value] of handedOut ?? []) {
      if (name in node.values || !isExplicit(node, name) || !info.fields.has(name)) continue;
      node.draft?.own(node);
      node.values[name] = value;
    }
  }
  node.defaults = undefined;
  node.containers = undefined;
  const kept = [...(node.tags ?? [])].filter(([name]) => info.fields.has(name));
  node.tags = kept.length === 0 ? undefined : new Map(kept);
  node.info = info;
  record(node, '', 'class', info.cls, origin);
}

function checkValue(node: ConfigNode, field: FieldInfo, value: unknown, origin: Origin): void {
  if (field.quickCheck?.(value) === true) return;
  let problem: string | undefined;
  let cause: unknown;
  try {
    problem = problemOf(field, value);
  } catch (error) {
    // A transform or refinement of the user's own threw.
    cause = error;
    problem = `${field.name}: its schema failed on ${showValue(value)}: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (problem === undefined) return;
  const place = presentPlace(origin);
  throw new ConfigError(`${node.info.name}.${problem}`, { path: field.name, place, cause });
}
