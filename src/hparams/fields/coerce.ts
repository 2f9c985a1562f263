/** @file Values from the text of command-line flags, by the field's schema. */
import type { z } from 'zod';
import { didYouMean, nearest } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import type { AbstractClass, AnyConfig, ConcreteClass } from '../types.js';
import { classesNamed, nameOf, severalProblem } from './classNames.js';
import { describeFor, showValue } from './describe.js';
import { abstractProblem, infoOf } from './fields.js';
import { fitting, namedAmong } from './fittingClasses.js';
import {
  type Argument,
  type Call,
  type Literal,
  parseClassCall,
  parseLiteral,
  problemAt,
} from './literals.js';
import { accepts, definitionOf, type Holder, holderOf, innermost, parse } from './schema.js';

/** Result for a text that the schema cannot parse. */
const failed = Symbol('failed');

/**
 * Parses `text` by `schema`. A string field takes the text as it is, or without the quotes around the whole of it.
 * Numbers are as in JavaScript (`1e-3`, `1_000`, `0x10`, `NaN`), booleans `true` and `false`, null is `null` or `none`
 * if the schema allows it, lists are `[a, b]` or `a,b`, records `{a: 1}` or `a:1`, configs the name of a class,
 * optionally with values: `Linear(inputDims=4)`. Quoted texts are always strings; in a union, string is the last
 * choice.
 *
 * @throws ConfigError with the expected form; it begins with `label`, if given.
 */
export function coerce(schema: z.ZodType, text: string, label?: string): unknown {
  const prefix = label === undefined ? '' : `${label}: `;
  return checked(schema, () => read(schema, parseLiteral(text), true), text, prefix);
}

/** Like `coerce`, of a literal that was read already. @throws ConfigError as `coerce` does. */
export function coerceLiteral(schema: z.ZodType, literal: Literal, label: string): unknown {
  return checked(schema, () => read(schema, literal, false), literal.text, `${label}: `);
}

function checked(schema: z.ZodType, readValue: () => unknown, text: string, prefix: string): unknown {
  let value: unknown;
  let result: z.ZodSafeParseResult<unknown> | undefined;
  try {
    value = readValue();
    if (value !== failed) result = parse(schema, value);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(`${prefix}${error.problem}`);
  }
  if (result?.success === true) return value;
  const own = result?.error?.issues.find(
    (issue) => issue.code === 'custom' && issue.message !== 'Invalid input',
  );
  const expected = own?.message ?? `expected ${describeFor(schema, value)}`;
  throw new ConfigError(`${prefix}${expected}, got '${text}'${hintFor(schema, text)}`);
}

/** `whole` is set if the literal is all of a flag's value: brackets around a list or a record are then optional. */
function read(schema: z.ZodType, literal: Literal, whole: boolean): unknown {
  const inner = innermost(schema);
  const definition = definitionOf(inner);
  if (isWord(literal, 'null') && accepts(schema, 'nullable')) return null;
  const value = readInner(inner, literal, whole);
  // A choice may be called `none`; a text is not.
  const isChoice = value !== failed && ['enum', 'literal'].includes(definition.type);
  return !isChoice && isWord(literal, 'none') && accepts(schema, 'nullable') ? null : value;
}

function isWord(literal: Literal, word: string): boolean {
  return literal.kind === 'word' && literal.text.trim().toLowerCase() === word;
}

function readInner(schema: z.ZodType, literal: Literal, whole: boolean): unknown {
  const holder = holderOf(schema);
  if (holder !== undefined) return readConfig(holder, textOf(literal).trim());
  const definition = definitionOf(schema);
  switch (definition.type) {
    case 'string':
    case 'template_literal':
      return textOf(literal);
    case 'number':
    case 'nan':
      return readNumber(literal);
    case 'bigint':
      return readBigInt(literal);
    case 'boolean':
      return isWord(literal, 'true') ? true : isWord(literal, 'false') ? false : failed;
    case 'null':
      return isWord(literal, 'null') || isWord(literal, 'none') ? null : failed;
    case 'date':
      return new Date(textOf(literal));
    case 'literal':
      return readChoice(definition.values!, literal);
    case 'enum':
      return readChoice(Object.values(definition.entries!), literal);
    case 'union':
      return readUnion(definition.options!, literal, whole);
    case 'pipe':
      return read(definition.in!, literal, whole);
    case 'array':
      return readList(literal, whole, () => definition.element);
    case 'tuple':
      return readList(literal, whole, (i) => definition.items![i] ?? definition.rest ?? undefined);
    case 'set':
      return readSet(literal, whole, definition.valueType!);
    case 'record':
      return readRecord(literal, whole, () => definition.valueType);
    case 'object':
      return readRecord(literal, whole, (key) =>
        Object.hasOwn(definition.shape!, key) ? definition.shape![key] : definition.catchall,
      );
    default:
      return readFree(schema, literal);
  }
}

/** Value of a string field: the text, without the quotes around all of it. */
function textOf(literal: Literal): string {
  return literal.kind === 'string' ? literal.value : literal.text;
}

function readNumber(literal: Literal): unknown {
  if (literal.kind !== 'word') return failed;
  const text = literal.text.trim();
  if (/^(NaN|[+-]?Infinity)$/.test(text)) return Number(text);
  const plain = text.replaceAll(/(?<=[\da-fA-F])_(?=[\da-fA-F])/g, '');
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) || /^0(x[\da-f]+|b[01]+|o[0-7]+)$/i.test(plain)
    ? Number(plain)
    : failed;
}

function readBigInt(literal: Literal): unknown {
  const text = literal.text.trim().replaceAll(/(?<=\d)_(?=\d)/g, '');
  return literal.kind === 'word' && /^[+-]?\d+n?$/.test(text) ? BigInt(text.replace(/^\+|n$/g, '')) : failed;
}

function readChoice(values: readonly unknown[], literal: Literal): unknown {
  if (literal.kind === 'string') return values.find((value) => value === literal.value) ?? failed;
  const named = values.filter((value) => String(value) === literal.text.trim());
  const value = named.find((each) => typeof each !== 'string') ?? named[0];
  return named.length === 0 ? failed : value;
}

function readUnion(options: z.ZodType[], literal: Literal, whole: boolean): unknown {
  // Every text is a string, and `1,2` may be a list: the narrower schema wins.
  const loose = ['array', 'tuple', 'set', 'record', 'object'];
  const rank = (option: z.ZodType): number => {
    const { type } = definitionOf(innermost(option));
    return type === 'string' ? 2 : Number(loose.includes(type));
  };
  for (const option of [...options].sort((a, b) => rank(a) - rank(b))) {
    const bracketed = rank(option) === 1 && options.some((each) => rank(each) === 2);
    const value = read(option, literal, whole && !bracketed);
    if (value !== failed && parse(option, value).success) return value;
  }
  return failed;
}

function readList(
  literal: Literal,
  whole: boolean,
  elementAt: (index: number) => z.ZodType | undefined,
): unknown {
  const list = bracketed(literal, 'list', whole ? '[]' : undefined);
  if (list === undefined) return failed;
  const items = list.items.map((item, i) => readPart(elementAt(i), item));
  return items.includes(failed) ? failed : items;
}

function readSet(literal: Literal, whole: boolean, element: z.ZodType): unknown {
  const items = readList(literal, whole, () => element);
  return items === failed ? failed : new Set(items as unknown[]);
}

function readRecord(
  literal: Literal,
  whole: boolean,
  valueAt: (key: string) => z.ZodType | undefined,
): unknown {
  const record = bracketed(literal, 'record', whole ? '{}' : undefined);
  if (record === undefined) return failed;
  const entries = record.entries.map(([key, item]) => [key, readPart(valueAt(key), item)] as const);
  return entries.some(([, value]) => value === failed) ? failed : Object.fromEntries(entries);
}

function readPart(schema: z.ZodType | undefined, literal: Literal): unknown {
  // The schema reports an extra element, or an unknown key.
  return schema === undefined ? plainValue(literal) : read(schema, literal, false);
}

/** The literal as a list or a record; `brackets` may be omitted around a flag's whole value. */
function bracketed<K extends 'list' | 'record'>(
  literal: Literal,
  kind: K,
  brackets: string | undefined,
): Extract<Literal, { kind: K }> | undefined {
  const isOther = literal.kind === 'list' || literal.kind === 'record';
  const found =
    literal.kind === kind || brackets === undefined || isOther
      ? literal
      : parseLiteral(`${brackets[0]}${literal.text}${brackets[1]}`);
  return found.kind === kind ? (found as Extract<Literal, { kind: K }>) : undefined;
}

/** For schemas without a known form: the literal's plain value, else its text. */
function readFree(schema: z.ZodType, literal: Literal): unknown {
  const value = plainValue(literal);
  return parse(schema, value).success ? value : textOf(literal);
}

/** Value of a literal without a schema: null, booleans, numbers, else strings. */
export function plainValue(literal: Literal): unknown {
  if (literal.kind === 'string') return literal.value;
  if (literal.kind === 'list') return literal.items.map(plainValue);
  if (literal.kind === 'record')
    return Object.fromEntries(literal.entries.map(([key, item]) => [key, plainValue(item)]));
  const text = literal.text.trim();
  if (text === 'null') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  if (/^[+-]?\d+n$/.test(text)) return readBigInt(literal);
  const number = readNumber(literal);
  return number === failed ? literal.text : number;
}

/** Whether a text gives a class values, and does not only name it. */
const isCall = (text: string): boolean => /^[A-Za-z_$][\w$./-]*\(/.test(text);

function readConfig(holder: Holder, text: string): unknown {
  const call = isCall(text) ? parseClassCall(text) : { name: text, arguments: [], text };
  const named = namedAmong(fitting(holder), call.name);
  if (named.length !== 1) return failed;
  const cls = named[0] as unknown as ConcreteClass & { config(): AnyConfig; partial(): AnyConfig };
  const config = holder.kind === 'factory' ? cls.partial() : cls.config();
  for (const argument of call.arguments) setArgument(config, cls, argument, call);
  return config;
}

/** Sets a field of `config` to an argument of the call that describes it. @throws ConfigError that points at it */
function setArgument(
  config: AnyConfig,
  cls: AbstractClass,
  { name, value, column }: Argument,
  { text }: Call,
) {
  const { fields } = infoOf(cls);
  if (name === undefined) {
    const [first = 'field'] = fields.keys();
    throw problemAt(
      `${cls.name} takes its values by name, as ${cls.name}(${first}=${value.text}).`,
      text,
      column,
    );
  }
  const field = fields.get(name);
  if (field === undefined)
    throw problemAt(
      `${cls.name} has no hyperparameter '${name}'.${didYouMean(name, fields.keys())}`,
      text,
      column,
    );
  (config as unknown as Record<string, unknown>)[name] = coerceLiteral(
    field.check,
    value,
    `${cls.name}.${name}`,
  );
}

function hintFor(schema: z.ZodType, given: string): string {
  const text =
    holderOf(schema) !== undefined && isCall(given.trim()) ? given.replace(/\([\s\S]*/, '') : given;
  const definition = definitionOf(innermost(schema));
  const holder = holderOf(schema);
  let candidates: string[] = [];
  if (holder !== undefined) {
    const classes = fitting(holder);
    const named = namedAmong(classes, text.trim());
    if (named.length > 1) return `. ${severalProblem(text.trim(), named)}`;
    candidates = classes.map(nameOf);
  }
  if (definition.type === 'enum') candidates = Object.values(definition.entries!).map(String);
  else if (definition.type === 'literal') candidates = definition.values!.map(String);
  const near = nearest(text, candidates);
  const [named] = holder === undefined ? [] : classesNamed(text.trim());
  const problem = named && abstractProblem(named);
  if (problem !== undefined) return `. ${problem}`;
  if (near !== undefined) return `. Did you mean ${showValue(near)}?`;
  return holder?.cls === undefined || candidates.length === 0
    ? ''
    : `. Known classes: ${candidates.sort().join(', ')}.`;
}
