/** @file The values of configs as expressions. */

import { constantNameOf } from '../documents/registered.js';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { isContainer, partsOf, refusedKeys } from '../nodes/containers.js';
import { type ConfigNode, nodeOf } from '../nodes/node.js';
import { formatLink, type PathLink } from '../walking/paths.js';
import { array, type Code, call, object } from './code.js';
import type { Imports } from './imports.js';
import { keyText, numberText, stringText } from './names.js';

/** How to write the parts of a value that are not plain. */
export interface ValueContext {
  readonly imports: Imports;
  /** The expression of a config. */
  config(node: ConfigNode): Code;
  /** The expression of anything else that stands for something, if it does. */
  special?(value: unknown): Code | undefined;
}

/** `value` as an expression. @throws ConfigError, with `path`, for what cannot be written as code. */
export function valueCode(value: unknown, context: ValueContext, path: PathLink | undefined): Code {
  switch (typeof value) {
    case 'string':
      return stringText(value);
    case 'number':
      return numberText(value);
    case 'bigint':
      return `${value}n`;
    case 'boolean':
      return String(value);
    case 'undefined':
      return 'undefined';
    default:
      return value === null ? 'null' : referenceCode(value, context, path);
  }
}

function referenceCode(value: unknown, context: ValueContext, path: PathLink | undefined): Code {
  const node = nodeOf(value);
  if (node !== undefined) return context.config(node);
  const special = context.special?.(value);
  if (special !== undefined) return special;
  if (isContainer(value)) return containerCode(value, context, path);
  if (value instanceof Date) return call('new Date', [dateCode(value)]);
  const prototype: unknown = typeof value === 'object' ? Object.getPrototypeOf(value) : undefined;
  if (prototype === Map.prototype || prototype === Set.prototype) {
    return collectionCode(value as Map<unknown, unknown> | Set<unknown>, context, path);
  }
  const exported = context.imports.find(value);
  if (exported !== undefined) return exported;
  throw unwritable(value, path);
}

function containerCode(
  value: Record<string, unknown> | unknown[],
  context: ValueContext,
  path: PathLink | undefined,
): Code {
  if (Array.isArray(value)) {
    return array(value.map((item, i) => valueCode(item, context, { parent: path, segment: i })));
  }
  return object(
    Object.keys(value).map((key) => {
      const where = { parent: path, segment: { key } };
      if (refusedKeys.has(key)) throw refusedKey(key, where);
      return { key: keyText(key), value: valueCode(value[key], context, where) };
    }),
  );
}

function collectionCode(
  value: Map<unknown, unknown> | Set<unknown>,
  context: ValueContext,
  path: PathLink | undefined,
): Code {
  const segments = partsOf(value)!.map(([segment]) => ({ parent: path, segment }));
  const items = [...value].map((item, i) => valueCode(item, context, segments[i]));
  return call(value instanceof Map ? 'new Map' : 'new Set', items.length === 0 ? [] : [array(items)]);
}

function dateCode(date: Date): Code {
  return Number.isNaN(date.getTime()) ? 'Number.NaN' : stringText(date.toISOString());
}

function refusedKey(key: string, where: PathLink): ConfigError {
  return new ConfigError(`${formatLink(where)}: '${key}' is not allowed as a key.`, {
    path: formatLink(where),
  });
}

function unwritable(value: unknown, link: PathLink | undefined): ConfigError {
  const path = formatLink(link);
  const constant = constantNameOf(value);
  const hint =
    constant === undefined
      ? 'Describe it by a config or by plain values, or export it from a module and add that to the option modules.'
      : `It is the constant '${constant}': add the module that exports it to the option modules.`;
  return new ConfigError(
    `${path === '' ? '<root>' : path}: ${showValue(value)} cannot be written as code. ${hint}`,
    {
      path,
    },
  );
}
