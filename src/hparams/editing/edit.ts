/** @file Edits of one config: assignment, copies, another kind or class, explicit defaults. */

import { countText, didYouMean, linesBelow } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import { problemOf } from '../fields/check.js';
import { showValue } from '../fields/describe.js';
import { FIELDS, infoOf } from '../fields/fields.js';
import { copyAlone, copyNode, deepCopyOf } from '../nodes/fieldValues.js';
import {
  type ConfigNode,
  deleteField,
  fieldOf,
  hasValue,
  isExplicit,
  type NodeKind,
  nodeOf,
  type Origin,
  originText,
  rawValue,
  requireNode,
  setClass,
  unreadable,
  writeField,
  writeTags,
} from '../nodes/node.js';
import { origin, withOrigin } from '../nodes/record.js';
import type { AnyConfig, AnyTarget, AsConfig, AsPartial, BUILT, ConfigLike, NameIn } from '../types.js';
import { allEdges } from '../walking/iterate.js';
import { walk } from '../walking/walk.js';

/** Whether `value` is a config (or a partial). */
export function isConfig(value: unknown): value is AnyConfig {
  return nodeOf(value) !== undefined;
}

/** The class that `config` describes an instance of. */
export function classOf<T>(config: { readonly [BUILT]: T }): abstract new (...values: never[]) => T {
  return requireNode(config, 'classOf').info.cls as unknown as abstract new (
    ...values: never[]
  ) => T;
}

/** Whether the field was set, rather than showing its default. */
export function isSet<C extends AnyConfig>(config: C, name: NameIn<C>): boolean {
  const node = requireNode(config, 'isSet');
  return isExplicit(node, fieldOf(node, String(name), origin()).name);
}

/** Brings the field's default back, as `delete config.name` does, which TypeScript allows for optional fields only. */
export function unset<C extends AnyConfig>(config: C, name: NameIn<C>): void {
  deleteField(requireNode(config, 'unset'), String(name), origin());
}

/** Sets several fields. @throws ConfigError with everything that is wrong; fields that were right are set. */
export function assign<C extends AnyConfig>(config: C, values: Partial<Pick<C, NameIn<C>>>): C {
  requireNode(config, 'assign');
  assignValues(config, values, 'assign()', origin());
  return config;
}

/** Writes `values` into `config`. @throws ConfigError with all problems; valid values are written. */
export function assignValues(config: AnyConfig, values: object, what: string, writer: Origin): void {
  checkValues(values, what, writer);
  const node = nodeOf(config)!;
  const problems: ConfigError[] = [];
  // A symbol names no hyperparameter, and is not skipped.
  for (const key of [...Object.keys(values), ...Object.getOwnPropertySymbols(values)]) {
    const name = String(key);
    try {
      writeField(
        node,
        name,
        read(() => (values as Record<PropertyKey, unknown>)[key], name),
        writer,
      );
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(error);
    }
  }
  if (problems.length === 1) throw problems[0]!;
  if (problems.length === 0) return;
  const list = linesBelow(problems.map(({ problem }) => problem));
  throw new ConfigError(`${what}: ${countText(problems.length)} problems:${list}`, {
    place: originText(writer),
  });
}

/** The result of `get`. @throws ConfigError for errors of a getter or a proxy. */
function read<T>(get: () => T, name: string): T {
  try {
    return get();
  } catch (cause) {
    throw unreadable(name, cause);
  }
}

function checkValues(values: unknown, what: string, writer: Origin): void {
  // Of a list or a Map, keys would be read that are no names; of a config, defaults as if they had been set.
  const isRecord = read(
    () => typeof values === 'object' && values !== null && !(Symbol.iterator in values),
    what,
  );
  if (isRecord && nodeOf(values) === undefined) return;
  const hint = isRecord
    ? ' copy() and copyWith() give another config with the same values, cast() one of another kind.'
    : '';
  throw new ConfigError(`${what} takes an object of values, got ${showValue(values)}.${hint}`, {
    place: originText(writer),
  });
}

/** A config with the same values: sub-configs are shared with the original, arrays and records are not. */
export function copy<C extends AnyConfig>(config: C): C {
  return copyAlone(requireNode(config, 'copy')).proxy as C;
}

/** A config that shares nothing with the original; sharing within it is kept. */
export function deepCopy<C extends AnyConfig>(config: C): C {
  requireNode(config, 'deepCopy');
  return deepCopyOf(config) as C;
}

const kinds: readonly NodeKind[] = ['config', 'partial', 'argFactory'];

/** A copy of another kind: same values, tags and history; sub-configs are shared with the original. */
export function cast<C extends AnyConfig>(kind: 'partial', config: C): AsPartial<C>;
export function cast<C extends AnyConfig>(kind: 'config' | 'argFactory', config: C): AsConfig<C>;
export function cast(kind: NodeKind, config: AnyConfig): AnyConfig {
  if (!kinds.includes(kind)) {
    const valid = didYouMean(String(kind), kinds) || ` There are ${kinds.join(', ')}.`;
    throw new ConfigError(`cast() takes a kind of config, got ${showValue(kind)}.${valid}`, {
      place: originText(origin()),
    });
  }
  return copyNode(requireNode(config, 'cast'), (held) => held, kind).proxy;
}

/** A copy with other values, which shares sub-configs with the original. @throws ConfigError with all that is wrong. */
export function copyWith<C extends AnyConfig>(config: C, values: Partial<Pick<C, NameIn<C>>>): C {
  requireNode(config, 'copyWith');
  const made = copy(config);
  assignValues(made, values, 'copyWith()', origin());
  return made;
}

/** A copy that shares nothing with the original, with other values. @throws ConfigError with all that is wrong. */
export function deepCopyWith<C extends AnyConfig>(config: C, values: Partial<Pick<C, NameIn<C>>>): C {
  requireNode(config, 'deepCopyWith');
  const made = deepCopy(config);
  assignValues(made, values, 'deepCopyWith()', origin());
  return made;
}

/**
 * Makes `config` describe another class (or function), in place: whatever holds it sees the change. Values are kept,
 * and so is the history, to which the change is added. `dropInvalid` lets go of the values, and the tags, of fields
 * that the new class does not have or whose values it does not accept.
 *
 * @throws ConfigError that lists all values that do not fit; then nothing has changed.
 */
export function updateCallable<C extends AnyConfig, X extends AnyTarget>(
  config: C,
  target: X,
  options: { dropInvalid?: boolean } = {},
): ConfigLike<C, X> {
  const writer = origin();
  const node = requireNode(config, 'updateCallable');
  if (typeof target !== 'function' || !(FIELDS in target)) {
    throw new ConfigError(
      `updateCallable() takes a class that extends Configurable, or a configurable() target; got ${showValue(target)}.`,
      { place: originText(writer) },
    );
  }
  const info = infoOf(target as never);
  const problems = new Map<string, string>();
  for (const [name, old] of node.info.fields) {
    if (!isExplicit(node, name)) continue;
    const field = info.fields.get(name);
    const problem =
      field === undefined ? unknownField(name, info.fields.keys()) : problemOf(field, rawValue(node, old));
    if (problem !== undefined) problems.set(name, problem);
  }
  if (problems.size > 0 && options.dropInvalid !== true) {
    const list = linesBelow([...problems.values()]);
    throw new ConfigError(
      `${info.name} cannot take over from ${node.info.name}; { dropInvalid: true } would drop these values:${list}`,
      { place: originText(writer) },
    );
  }
  for (const name of problems.keys()) dropField(node, name, writer);
  setClass(node, info, writer);
  return config as unknown as ConfigLike<C, X>;
}

function unknownField(name: string, names: Iterable<string>): string {
  return `${name}: it has no such hyperparameter.${didYouMean(name, names)}`;
}

function dropField(node: ConfigNode, name: string, writer: Origin): void {
  const field = node.info.fields.get(name)!;
  deleteField(node, name, writer);
  if (node.tags?.has(name) === true) writeTags(node, field, field.tags, writer);
}

/**
 * Sets every unset field in `root` to its default, in place; default sub-configs become explicit. Explicit values
 * stay. Fields without a usable default stay unset: those without any, optional ones, and those whose schema
 * transforms values.
 */
export function materializeDefaults<R>(root: R): R {
  const writer = origin();
  const places: [ConfigNode, string][] = [];
  walk(root, {
    children: allEdges,
    enter(node) {
      for (const field of node.info.fields.values()) {
        if (field.name in node.values || !hasValue(node, field)) continue;
        const value = rawValue(node, field);
        if (value !== undefined && problemOf(field, value) === undefined) places.push([node, field.name]);
      }
    },
  });
  withOrigin(writer, () => {
    for (const [node, name] of places) {
      const config = node.proxy as unknown as Record<string, unknown>;
      const value = config[name];
      config[name] = value;
    }
  });
  return root;
}
