/** @file A config's node: its class, its explicit values and how they are read, checked, written and recorded. */

import { carriedBy, carrierOf, carrierTags, hasCarried } from './carriers.js';
import { problemOf } from './check.js';
import { ConfigNode, Defaults, nodeOf, type Origin, present, seenFrom } from './configNode.js';
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
  if (node !== undefined) {
    assertOpen(node);
    return node;
  }
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
  if (node.draft?.session.closed === true) throw usedLate(node);
}

/** The error of whoever still uses a draft. */
export function usedLate(node: ConfigNode): ConfigError {
  return new ConfigError(`This draft of ${node.info.name} was used after its derive() had ended.`);
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
  const value = storedValue(node, field);
  // Whoever goes through a draft must meet drafts: an edit of what they stand for would show in the original.
  return node.draft === undefined ? value : mapContainers(value, (leaf) => present(node, leaf));
}

function storedValue(node: ConfigNode, field: FieldInfo): unknown {
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
  if (nodeOf(made) !== undefined) return defaultConfig(node, field, () => made as AnyConfig, before);
  const kept = mapContainers(ownDefault(made, before), (leaf) => {
    const carrier = carrierOf(leaf);
    return carrier === undefined ? leaf : copyCarrier(carrier).proxy;
  });
  const owner = base === undefined || base === node ? node : null;
  for (const child of nodesIn(kept)) markDefault(child, node, owner);
  (node.containers ??= new Map()).set(name, kept);
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
  node.draft?.session.own(node);
  const own = storedValue(node, field) as object;
  return viewOf(own, () => ownerOf(node, field));
}

let traceOfEdit: () => Origin = () => '';

/** Tells this module how to find who edits a container. */
export function setEditTracer(tracer: () => Origin): void {
  traceOfEdit = tracer;
}

function ownerOf(node: ConfigNode, field: FieldInfo): Owner {
  let newlyHeld: ConfigNode[] = [];
  const owner: Owner = {
    keep: (value) => present(node, value),
    handOut(value, isRemoved) {
      const kept = present(node, value);
      const carrier = carrierOf(kept);
      if (carrier === undefined) return kept;
      if (hasCarried(carrier)) {
        carrier.draft?.session.own(carrier);
        return showPart(carrier.values.value, owner);
      }
      if (isRemoved) return undefined;
      throw new NotSetError(
        `${node.info.name}.${field.name}: the part tagged ${carrierTags(carrier).join(', ')} is not set.`,
        { path: field.name },
      );
    },
    get isDraft() {
      return node.draft !== undefined;
    },
    takeIn(value, before) {
      assertOpen(node);
      try {
        const carrier = carrierOf(before);
        if (carrier === undefined) return accept(node, value, newlyHeld);
        const next = copyCarrier(seenFrom(node, carrier));
        writeField(next, 'value', value, traceOfEdit());
        return acceptNew(node, next);
      } catch (error) {
        newlyHeld = [];
        throw error;
      }
    },
    edited(container) {
      const held = newlyHeld;
      newlyHeld = [];
      const origin = traceOfEdit();
      assertWritable(node, field.name, origin);
      const root = storedValue(node, field);
      if (!standsIn(node, root, container)) throw detached(node, field, container, origin);
      const seen = node.draft === undefined ? root : mapContainers(root, (leaf) => present(node, leaf));
      checkValue(node, field, seen, origin);
      makeExplicit(held);
      node.values[field.name] = root;
      node.containers?.delete(field.name);
      record(node, field.name, 'edit', seen, origin);
    },
  };
  return owner;
}

/** Whether `container` is `value` or stands in it. */
function standsIn(node: ConfigNode, value: unknown, container: object): boolean {
  if (value === container) return true;
  const carrier = carrierOf(value);
  if (carrier !== undefined) return standsIn(node, seenFrom(node, carrier).values.value, container);
  return isContainer(value) && Object.values(value).some((part) => standsIn(node, part, container));
}

function detached(node: ConfigNode, field: FieldInfo, container: object, origin: Origin): ConfigError {
  const what = Array.isArray(container) ? 'array' : 'record';
  const name = `${node.info.name}.${field.name}`;
  return new ConfigError(
    `This ${what} was part of ${name}, but is no more: something else was written there since. Read ${name} again.`,
    { path: field.name, place: presentPlace(origin) },
  );
}

/** A value as a node stores it. Defaults of other places that stand in it are added to `held`. */
function accept(node: ConfigNode, value: unknown, held: ConfigNode[]): unknown {
  return mapContainers(value, (leaf) => acceptLeaf(node, leaf, held));
}

function acceptLeaf(owner: ConfigNode, value: unknown, held: ConfigNode[]): unknown {
  const node = nodeOf(value);
  if (node === undefined) return value;
  assertOpen(node);
  const carrier = carrierOf(value);
  // A carrier stands in one place only, so that setting it there shows nowhere else.
  if (carrier !== undefined) return acceptNew(owner, copyCarrier(carrier));
  const seen = seenFrom(owner, node);
  if (seen.writesAtBirth >= 0) held.push(seen);
  return seen.proxy;
}

function acceptNew(owner: ConfigNode, node: ConfigNode): AnyConfig {
  return seenFrom(owner, node).proxy;
}

/** A default that is put elsewhere too is no mere default any more: whoever copies or saves it must see both places. */
function makeExplicit(nodes: readonly ConfigNode[]): void {
  for (const node of nodes) node.writesAtBirth = -1;
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
  let stored = value;
  if (typeof value === 'object' && value !== null) {
    const held: ConfigNode[] = [];
    stored = accept(node, value, held);
    checkValue(node, field, stored, origin);
    makeExplicit(held);
  } else checkValue(node, field, value, origin);
  node.draft?.session.own(node);
  node.values[name] = stored;
  record(node, name, 'set', stored, origin);
}

/** Brings the default back. */
export function deleteField(node: ConfigNode, name: string, origin: Origin): void {
  fieldOf(node, name, origin);
  assertWritable(node, name, origin);
  const { draft } = node;
  draft?.session.own(node);
  delete node.values[name];
  node.containers?.delete(name);
  const isDraft = draft !== undefined && draft.base !== node;
  if (isDraft) (draft.forgotten ??= new Set()).add(name);
  if (node.defaults?.has(name) === true) {
    // Derived configs share the map: forgetting a default must not reach them.
    node.defaults = new Defaults(isDraft ? null : node, node.defaults);
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
      node.draft?.session.own(node);
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
