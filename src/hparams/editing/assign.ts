/** @file Looking at a config's fields, and writing several at once. */

import { ConfigError, countText, linesBelow } from '../errors.js';
import { showValue } from '../fields/describe.js';
import {
  deleteField,
  fieldOf,
  isExplicit,
  nodeOf,
  type Origin,
  originText,
  requireNode,
  unreadable,
  writeField,
} from '../nodes/node.js';
import { origin } from '../nodes/record.js';
import type { AnyConfig, BUILT, NameIn } from '../types.js';

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

/** Writes `values` into `config`. @throws ConfigError with all that is wrong; what was right is written. */
export function assignValues(config: AnyConfig, values: object, what: string, writer: Origin): void {
  checkValues(values, what, writer);
  const node = nodeOf(config)!;
  const problems: ConfigError[] = [];
  // A symbol names no hyperparameter, and is not passed over.
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

/** What `get` gives. @throws ConfigError where a getter or a proxy throws. */
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
