/** @file Writing several fields at once, with every problem reported together. */

import { ConfigError, countText, linesBelow } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { nodeOf, type Origin, originText, unreadable, writeField } from '../nodes/node.js';
import type { AnyConfig } from '../types.js';

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
