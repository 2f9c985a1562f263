/** @file Schemas and values in words, for error messages and help. */
import type { z } from 'zod';
import { handlerOf } from '../nodes/containerTypes.js';
import { type Check, type Definition, definitionOf, holderOf, innermost } from './schema.js';

/** Values that `schema` accepts, as a noun phrase: `a positive integer`, `one of 'a', 'b'`. */
export function describeSchema(schema: z.ZodType): string {
  return describe(schema, 0);
}

/** Like `describeSchema`, for the invalid `value`: mentions implicit limits that it violates. */
export function describeFor(schema: z.ZodType, value: unknown): string {
  const text = describeSchema(schema);
  const isInfinite = typeof value === 'number' && !Number.isFinite(value);
  return isInfinite ? text.replace(/\bnumber\b(?! from)/, 'finite number') : text;
}

// Schemas may be recursive through z.lazy: a few levels suffice.
const deepest = 4;

function describe(schema: z.ZodType, depth: number): string {
  const definition = definitionOf(schema);
  if (definition.type === 'nullable') return `${describe(definition.innerType!, depth)} or null`;
  const holder = holderOf(schema);
  if (holder !== undefined) return holder.configs;
  if (definition.innerType !== undefined) return describe(definition.innerType, depth);
  const inner = innermost(schema);
  return depth > deepest ? 'a value' : describeInner(definitionOf(inner), depth + 1);
}

function describeInner(definition: Definition, depth: number): string {
  const checks = [
    definition as unknown as Check,
    ...(definition.checks ?? []).map((check) => check._zod.def),
  ];
  switch (definition.type) {
    case 'number':
    case 'bigint':
      return describeNumber(checks, definition.type === 'bigint');
    case 'string':
      return describeString(checks);
    case 'boolean':
      return 'true or false';
    case 'literal':
      return choice(definition.values!);
    case 'enum':
      return choice(Object.values(definition.entries!));
    case 'array':
      return `an array${lengths(checks)} of ${plural(describe(definition.element!, depth))}`;
    case 'tuple':
      return `[${definition.items!.map((item) => describe(item, depth)).join(', ')}]`;
    case 'record':
      return `a record of ${plural(describe(definition.valueType!, depth))}`;
    case 'object':
      return `an object with ${Object.keys(definition.shape!).join(', ') || 'no keys'}`;
    case 'union':
      return [...new Set(definition.options!.map((option) => describe(option, depth)))].join(' or ');
    case 'pipe':
      return describe(definition.in!, depth);
    case 'map':
      return `a Map to ${plural(describe(definition.valueType!, depth))}`;
    case 'set':
      return `a Set of ${plural(describe(definition.valueType!, depth))}`;
    case 'date':
      return 'a Date';
    case 'any':
    case 'unknown':
      return 'anything';
    case 'null':
    case 'undefined':
      return definition.type;
    default:
      return `a valid ${definition.type === 'custom' ? 'value' : definition.type}`;
  }
}

function choice(values: unknown[]): string {
  const shown = values.map((value) => showValue(value));
  return shown.length === 1 ? shown[0]! : `one of ${shown.join(', ')}`;
}

function describeNumber(checks: Check[], big: boolean): string {
  const whole = big || checks.some((check) => check.format?.includes('int') === true);
  const noun = big ? 'big integer' : whole ? 'integer' : 'number';
  const low = checks.findLast((check) => check.check === 'greater_than');
  const high = checks.findLast((check) => check.check === 'less_than');
  const step = checks.findLast((check) => check.check === 'multiple_of');
  let adjective = '';
  const bounds: string[] = [];
  if (low !== undefined && Number(low.value) === 0) adjective = low.inclusive ? 'non-negative ' : 'positive ';
  if (high !== undefined && low === undefined && Number(high.value) === 0) {
    adjective = high.inclusive ? 'non-positive ' : 'negative ';
  } else if (low?.inclusive === true && high?.inclusive === true) {
    return `${withArticle(noun)} from ${low.value} to ${high.value}${multiple(step)}`;
  } else {
    if (low !== undefined && adjective === '')
      bounds.push(`${low.inclusive ? 'at least' : 'above'} ${low.value}`);
    if (high !== undefined) bounds.push(`${high.inclusive ? 'at most' : 'below'} ${high.value}`);
  }
  const phrase = `${adjective}${noun}`;
  return `${withArticle(phrase)}${bounds.length > 0 ? ` ${bounds.join(' and ')}` : ''}${multiple(step)}`;
}

function multiple(step: Check | undefined): string {
  return step === undefined ? '' : ` that is a multiple of ${step.value}`;
}

function describeString(checks: Check[]): string {
  const format = checks.findLast((check) => check.check === 'string_format');
  if (checks.some((check) => check.check === 'min_length' && check.minimum === 1) && format === undefined) {
    return 'a non-empty string';
  }
  if (format?.format === 'regex') return `a string like ${format.pattern}`;
  return `a string${format === undefined ? '' : ` in ${format.format} form`}${lengths(checks)}`;
}

function lengths(checks: Check[]): string {
  const exact = checks.findLast((check) => check.length !== undefined)?.length;
  const least = checks.findLast((check) => check.minimum !== undefined)?.minimum;
  const most = checks.findLast((check) => check.maximum !== undefined)?.maximum;
  if (exact !== undefined) return ` of length ${exact}`;
  if (least !== undefined && most !== undefined) return ` of length ${least} to ${most}`;
  if (least !== undefined) return ` of length at least ${least}`;
  return most === undefined ? '' : ` of length at most ${most}`;
}

function plural(phrase: string): string {
  const noun = /^an? ((?:[\w-]+ )?(?:integer|number|string|config|partial|record|array))\b(.*)$/.exec(phrase);
  const isChoice = / or (?!null$)/.test(phrase);
  if (noun !== null && !isChoice) return `${noun[1]}s${noun[2]}`;
  return / or /.test(phrase) ? `(${phrase})` : phrase;
}

/** `an AdamW`: a word after `a` or `an`, by its first letter. */
export function withArticle(word: string): string {
  return `${/^[aeiou]/i.test(word) ? 'an' : 'a'} ${word}`;
}

const longest = 80;

/** A value as one would write it in code, whatever its length. */
export function showLong(value: unknown): string {
  return show(value, -200);
}

/** A value on one short line, as one would write it in code. */
export function showValue(value: unknown): string {
  let text: string;
  try {
    text = show(value, 0);
  } catch {
    // A proxy or a getter that throws: the current message matters more than its error.
    return 'a value that cannot be read';
  }
  return text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
}

function show(value: unknown, depth: number): string {
  if (typeof value === 'string')
    return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return value.name === '' ? 'a function' : `function ${value.name}`;
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '-0' : String(value);
  if (Array.isArray(value)) {
    if (depth > 2) return '[…]';
    const items = (depth < 0 ? value : value.slice(0, longest)).map((item) => show(item, depth + 1));
    return `[${items.join(', ')}]`;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return showRegistered(value, depth) ?? showInstance(value);
  }
  if (depth > 2) return '{…}';
  return `{${Object.keys(value)
    .map((key) => `${key}: ${show((value as Record<string, unknown>)[key], depth + 1)}`)
    .join(', ')}}`;
}

/** A Map, a Set or a container of a registered class, with its parts. */
function showRegistered(value: object, depth: number): string | undefined {
  const handler = handlerOf(value);
  if (handler === undefined) return undefined;
  const { name } = value.constructor;
  if (depth > 2) return `${name} {…}`;
  if (!(value instanceof Map)) return `${name} ${show(handler.flatten(value), depth)}`;
  const entries = [...value].map(([key, part]) => `${show(key, depth + 1)} => ${show(part, depth + 1)}`);
  return `Map {${entries.join(', ')}}`;
}

function showInstance(value: object): string {
  if (value instanceof Date)
    return `Date(${Number.isNaN(value.getTime()) ? 'invalid' : value.toISOString()})`;
  if (value instanceof RegExp) return String(value);
  // A config's target names itself; anything else is named after its class.
  const label = (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag];
  const name = typeof label === 'string' ? label : (value.constructor?.name ?? 'object');
  return withArticle(name);
}
