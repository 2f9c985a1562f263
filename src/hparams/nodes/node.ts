/** @file Writes to a config's node: its values, tags and class, checked, stored and recorded. */

import { didYouMean } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import { problemOf } from '../fields/check.js';
import { showValue } from '../fields/describe.js';
import { abstractProblem, type ClassInfo, type FieldInfo } from '../fields/fields.js';
import { presentNameHint } from '../fields/renamed.js';
import { sortTags } from '../fields/schema.js';
import { captureTrace, placeText } from '../source.js';
import type { Tag } from '../types.js';
import {
  carriedBy,
  carrierOf,
  carrierTags,
  hasCarried,
  isCarrier,
  tagsAfter,
  withFieldTags,
} from './carriers.js';
import { ConfigNode, nodeOf, type Origin } from './configNode.js';
import { mapContainers } from './containers.js';
import { copyAlone } from './fieldValues.js';
import { isExplicit, makeExplicit } from './held.js';
import { record } from './record.js';

export {
  ConfigNode,
  NODE,
  type NodeKind,
  nodeOf,
  type Origin,
  type Write,
  type WriteKind,
} from './configNode.js';
export { rawValue } from './fieldValues.js';
export { hasValue, isExplicit } from './held.js';

/** The node of a config. @throws ConfigError for anything else; `operation` is who was given it. */
export function requireNode(value: unknown, operation: string): ConfigNode {
  const node = nodeOf(value);
  if (node !== undefined) return node;
  throw new ConfigError(`${operation}() takes a config, got ${showValue(value)}.`);
}

const duringBuild =
  'while configs were being built. Build from an edited copy instead: derive(config, (draft) => …).';
let frozen = { upTo: -1, explanation: '' };

/**
 * From here on, writes to existing configs are errors. Returns a function that ends this.
 *
 * @param explanation follows "X.field was written" in the message, with a fix; by default that of a build.
 */
export function freezeExisting(explanation = duringBuild): () => void {
  const before = frozen;
  frozen = { upTo: Math.max(before.upTo, ConfigNode.count), explanation };
  return () => {
    frozen = before;
  };
}

export function assertWritable(node: ConfigNode, field: string, origin: Origin): void {
  if (node.serial > frozen.upTo) return;
  throw new ConfigError(`${node.info.name}.${field} was written ${frozen.explanation}`, {
    place: presentPlace(origin),
    path: field,
  });
}

/** The place of the current write: its trace may be too short to reach the caller, but the stack still has it. */
export function presentPlace(origin: Origin): string | undefined {
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
  // Members of Object.prototype are no hint at a mistake.
  const isMember = name in (node.info.cls.prototype as object) && !(name in Object.prototype);
  const hint = isMember
    ? ` ${node.info.name} has a member of that name: was build(config) forgotten?`
    : presentNameHint(node.info.oldNames, name) ||
      didYouMean(name, names) ||
      (names.length === 0 ? ' It has none.' : ` It has ${names.join(', ')}.`);
  throw new ConfigError(`${node.info.name} has no hyperparameter '${name}'.${hint}`, {
    path: name,
    place: presentPlace(origin),
  });
}

/** A value as a node stores it. Defaults of other places in it are added to `held`. */
export function accept(value: unknown, held: ConfigNode[]): unknown {
  return mapContainers(value, (leaf) => acceptLeaf(leaf, held));
}

function acceptLeaf(value: unknown, held: ConfigNode[]): unknown {
  const node = nodeOf(value);
  if (node === undefined) return value;
  // A carrier is in one place only, so that setting it has no effect elsewhere.
  const own = isCarrier(node) ? copyAlone(node) : node;
  if (own.writesAtBirth >= 0) held.push(own);
  return own.proxy;
}

/** That the value called `name` could not be read: a getter or a proxy in it threw `cause`. */
export function unreadable(name: string, cause: unknown, place?: string): ConfigError {
  const why = cause instanceof ConfigError ? cause.problem : `reading it failed: ${textOf(cause)}`;
  return new ConfigError(`${name}: ${why}`, { path: name, place, cause });
}

function textOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : showValue(cause);
}

/** Reads a value for a field. @throws ConfigError that names the field, for any error of the value's own code. */
export function readable<T>(node: ConfigNode, name: string, origin: Origin, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof ConfigError && cause.path !== undefined) throw cause;
    const { problem } = unreadable(`${node.info.name}.${name}`, cause);
    throw new ConfigError(problem, { path: name, place: presentPlace(origin), cause });
  }
}

/** Checks and stores a value. A carrier gives the field its value, if it has one, and its tags. */
export function writeField(node: ConfigNode, name: string, value: unknown, origin: Origin): void {
  const field = fieldOf(node, name, origin);
  assertWritable(node, name, origin);
  const carrier = readable(node, name, origin, () => carrierOf(value));
  if (carrier !== undefined) {
    if (hasCarried(carrier)) writeField(node, name, carriedBy(carrier), origin);
    writeTags(node, field, [...fieldTags(node, field), ...carrierTags(carrier)], origin);
    return;
  }
  let stored = value;
  if (typeof value === 'object' && value !== null) {
    const held: ConfigNode[] = [];
    stored = readable(node, name, origin, () => accept(value, held));
    checkValue(node, field, stored, origin);
    makeExplicit(held);
  } else checkValue(node, field, value, origin);
  node.values[name] = stored;
  record(node, name, 'set', stored, origin);
}

/** Brings the default back. */
export function deleteField(node: ConfigNode, name: string, origin: Origin): void {
  fieldOf(node, name, origin);
  assertWritable(node, name, origin);
  delete node.values[name];
  node.defaults?.delete(name);
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

/** @throws ConfigError for an abstract class: no config is of it. */
export function requireConcrete(info: ClassInfo): void {
  if (info.isAbstract) {
    throw new ConfigError(abstractProblem(info.cls)!, { place: placeText(captureTrace()) });
  }
}

/**
 * Gives a config another class. Explicit values stay: they must be fields of `info` already. Tags of fields that
 * `info` lacks go; defaults are those of `info` from here on, but the edited ones stay as values.
 */
export function setClass(node: ConfigNode, info: ClassInfo, origin: Origin): void {
  assertWritable(node, '', origin);
  requireConcrete(info);
  for (const [name, value] of node.defaults ?? []) {
    if (!(name in node.values) && isExplicit(node, name) && info.fields.has(name)) node.values[name] = value;
  }
  node.defaults = undefined;
  const kept = [...(node.tags ?? [])].filter(([name]) => info.fields.has(name));
  node.tags = kept.length === 0 ? undefined : new Map(kept);
  node.info = info;
  node.changedClass = true;
  record(node, '', 'class', info.cls, origin);
}

export function checkValue(node: ConfigNode, field: FieldInfo, value: unknown, origin: Origin): void {
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
