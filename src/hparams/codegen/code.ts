/** @file Values as expressions, and the layout of generated code. */
import { constantNameOf } from '../documents/document.js';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { isContainer, partsOf, refusedKeys } from '../nodes/containers.js';
import { type ConfigNode, nodeOf } from '../nodes/node.js';
import { formatLink, type PathLink } from '../walking/paths.js';

/** The text of an expression or statement; its lines below the first are indented from the first. */
export type Code = string;

const longestGroup = 90;

/** The lines of `code`, one level further in. */
export function indented(code: Code): Code {
  return `  ${code.replaceAll('\n', '\n  ')}`;
}

/** `open`, the parts with commas between them, and `close`. */
function group(open: string, parts: readonly Code[], close: string, pad = ''): Code {
  const length = parts.reduce((sum, part) => sum + part.length + 2, open.length);
  if (length <= longestGroup && !parts.some((part) => part.includes('\n'))) {
    return open + pad + parts.join(', ') + pad + close;
  }
  return `${open}\n${parts.map((part) => `${indented(part)},\n`).join('')}${close}`;
}

/** `callee(values)`. */
export function call(callee: string, values: readonly Code[]): Code {
  const [only] = values;
  // The parentheses and the brackets of a lone argument open on one line.
  if (values.length === 1 && /^[[{]/.test(only!)) return `${callee}(${only})`;
  return group(`${callee}(`, values, ')');
}

/** A key with its value, and a comment with the place that set it. */
export interface Entry {
  readonly key: string;
  readonly value: Code;
  readonly comment?: string | undefined;
}

export function object(entries: readonly Entry[]): Code {
  if (entries.length === 0) return '{}';
  const parts = entries.map(({ key, value, comment }) => {
    const entry = key === value ? key : `${key}: ${value}`;
    return comment === undefined ? entry : `// ${comment}\n${entry}`;
  });
  return group('{', parts, '}', ' ');
}

export function array(items: readonly Code[]): Code {
  return group('[', items, ']');
}

/** `{ name, other }`, as imports have it. */
export function namesInBraces(names: readonly string[]): Code {
  return group('{', names, '}', ' ');
}

/** A function: its head, such as `export function config`, parameters and statements. */
export function functionText(
  head: string,
  parameters: readonly string[],
  statements: readonly Code[],
  result?: string,
): Code {
  const end = result === undefined ? ')' : `): ${result}`;
  return `${group(`${head}(`, parameters, end)} {\n${statements.map(indented).join('\n')}\n}\n`;
}

// Characters that an editor may hide or reorder.
const hidden = /[^\P{C}]|[\p{Zl}\p{Zp}]/gu;

/** A string literal. */
export function stringText(value: string): string {
  const body = JSON.stringify(value).slice(1, -1);
  const requoted = body.replaceAll(/\\"|'/g, (found) => (found === "'" ? "\\'" : '"'));
  return `'${requoted.replaceAll(hidden, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)}'`;
}

/** Whether `name` needs no quotes as a key, or behind a dot. */
export function isIdentifier(name: string): boolean {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name);
}

/** A key of an object literal. */
export function keyText(key: string): string {
  return isIdentifier(key) ? key : stringText(key);
}

/** `.name`, or `['some key']`. */
export function memberText(name: string): string {
  return isIdentifier(name) ? `.${name}` : `[${stringText(name)}]`;
}

/** A number, including negative zero, infinities and NaN. */
function numberText(value: number): string {
  if (Number.isNaN(value)) return 'Number.NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Number.POSITIVE_INFINITY' : 'Number.NEGATIVE_INFINITY';
  return Object.is(value, -0) ? '-0' : String(value);
}

/** How to write the parts of a value that are not plain. */
export interface ValueContext {
  /** The name of a value that one of the modules exports. */
  exported(value: unknown): Code | undefined;
  /** The expression of a config. */
  config(node: ConfigNode): Code;
  /** The expression of a value with a replacement of its own, if any. */
  special(value: unknown): Code | undefined;
}

/** `value` as an expression. @throws ConfigError, with `path`, for values without a form as code. */
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
  const special = context.special(value);
  if (special !== undefined) return special;
  if (isContainer(value)) return containerCode(value, context, path);
  if (value instanceof Date) return call('new Date', [dateCode(value)]);
  const prototype: unknown = typeof value === 'object' ? Object.getPrototypeOf(value) : undefined;
  if (prototype === Map.prototype || prototype === Set.prototype) {
    return collectionCode(value as Map<unknown, unknown> | Set<unknown>, context, path);
  }
  const exported = context.exported(value);
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
