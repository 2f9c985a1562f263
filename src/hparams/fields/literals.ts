/** @file Literals and calls in flags: words, quoted strings, lists, records. */

import { ConfigError } from '../errors.js';
import { refusedKeys } from '../nodes/containers.js';
import { showValue } from './describe.js';

/** A literal that was read but not interpreted: the schema decides the type of `1` or `true`. */
export type Literal =
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: 'string'; readonly text: string; readonly value: string }
  | { readonly kind: 'list'; readonly text: string; readonly items: readonly Literal[] }
  | {
      readonly kind: 'record';
      readonly text: string;
      readonly entries: readonly (readonly [string, Literal])[];
    };

/** An argument of a call, by name or by position. */
export interface Argument {
  readonly name: string | undefined;
  readonly value: Literal;
  /** Where it begins in the call's text, from 0. */
  readonly column: number;
}

/** `name(1, key=value)` as read. */
export interface Call {
  readonly name: string;
  readonly arguments: readonly Argument[];
  readonly text: string;
}

/** A problem in a text, with a line that points at its column. */
export function problemAt(problem: string, text: string, column: number): ConfigError {
  // The line below must be as wide as the text, so that the caret is in its column.
  return new ConfigError(`${problem}\n  ${text.replaceAll(/\s/g, ' ')}\n  ${' '.repeat(column)}^`);
}

interface Cursor {
  readonly text: string;
  at: number;
  /** In a call, words with spaces or brackets must be quoted. */
  readonly strict: boolean;
}

// Deeper than anyone writes; also keeps the recursion small.
const deepest = 100;
const quoted = /'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*"/y;
const looseWord = /[^,[\]{}]+/y;
const strictWord = /[^\s,()[\]{}'"=]+/y;
const looseKey = /[^,:[\]{}]+/y;
const identifier = /[A-Za-z_$][\w$]*/y;
const className = /[A-Za-z_$][\w$./-]*/y;

function match(cursor: Cursor, pattern: RegExp): string | undefined {
  pattern.lastIndex = cursor.at;
  const found = pattern.exec(cursor.text)?.[0];
  if (found !== undefined) cursor.at += found.length;
  return found;
}

function skipSpace(cursor: Cursor): void {
  while (/\s/.test(cursor.text[cursor.at] ?? '')) cursor.at += 1;
}

function fail(cursor: Cursor, problem: string, at = cursor.at): never {
  throw problemAt(problem, cursor.text, at);
}

function take(cursor: Cursor, character: string): boolean {
  skipSpace(cursor);
  if (cursor.text[cursor.at] !== character) return false;
  cursor.at += 1;
  return true;
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' };

/** The content of a quoted text. */
function unquote(text: string): string {
  return text.slice(1, -1).replaceAll(/\\(?:u([\da-fA-F]{4})|([\s\S]))/g, (_, code?: string, letter = '') => {
    return code === undefined ? (escapes[letter] ?? letter) : String.fromCharCode(Number.parseInt(code, 16));
  });
}

function readLiteral(cursor: Cursor, depth = 0): Literal {
  if (depth > deepest) fail(cursor, `Literals may nest ${deepest} levels deep.`);
  skipSpace(cursor);
  const start = cursor.at;
  const textFrom = (): string => cursor.text.slice(start, cursor.at);
  const string = match(cursor, quoted);
  if (string !== undefined) return { kind: 'string', text: string, value: unquote(string) };
  if (take(cursor, '[')) {
    const items = readItems(cursor, ']', () => readLiteral(cursor, depth + 1));
    return { kind: 'list', text: textFrom(), items };
  }
  if (take(cursor, '{')) {
    const entries = readItems(cursor, '}', () => readEntry(cursor, depth));
    return { kind: 'record', text: textFrom(), entries };
  }
  if (/['"]/.test(cursor.text[start] ?? '')) fail(cursor, 'The quote is not closed.');
  if (skipCall(cursor, depth)) return { kind: 'word', text: textFrom() };
  const word = match(cursor, cursor.strict ? strictWord : looseWord)?.trim() ?? '';
  if (word === '') fail(cursor, 'Expected a value here.');
  if (cursor.strict && word.startsWith('*')) fail(cursor, 'Arguments cannot be spread with *.', start);
  return { kind: 'word', text: word };
}

/** Moves behind the call that begins here, `Linear(inputDims=4)`, a word to everything but fields that hold configs. */
function skipCall(cursor: Cursor, depth: number): boolean {
  const inner: Cursor = { text: cursor.text, at: cursor.at, strict: true };
  if (match(inner, className) === undefined || inner.text[inner.at] !== '(') return false;
  try {
    readArguments(inner, depth + 1);
  } catch (error) {
    // A text that merely looks like one.
    if (cursor.strict || !(error instanceof ConfigError)) throw error;
    return false;
  }
  if (!cursor.strict && !/^\s*([,\]}]|$)/.test(inner.text.slice(inner.at))) return false;
  cursor.at = inner.at;
  return true;
}

function readEntry(cursor: Cursor, depth: number): [string, Literal] {
  skipSpace(cursor);
  const start = cursor.at;
  const string = match(cursor, quoted);
  const key = string === undefined ? match(cursor, looseKey)?.trim() : unquote(string);
  if (key === undefined || key === '') fail(cursor, 'Expected a key here.');
  if (refusedKeys.has(key)) throw new RefusedKey(cursor.text, start, key);
  if (!take(cursor, ':')) fail(cursor, `Expected a colon after the key '${key}'.`);
  return [key, readLiteral(cursor, depth + 1)];
}

/** A key that would reach a prototype: never to be taken for a text that merely looks like a record. */
class RefusedKey extends ConfigError {
  constructor(text: string, at: number, key: string) {
    super(problemAt(`'${key}' is not allowed as a key.`, text, at).message);
  }
}

function readItems<T>(cursor: Cursor, closer: string, readItem: () => T): T[] {
  const items: T[] = [];
  if (take(cursor, closer)) return items;
  for (;;) {
    items.push(readItem());
    if (take(cursor, closer)) return items;
    if (take(cursor, ',')) continue;
    skipSpace(cursor);
    fail(cursor, `Expected a comma or '${closer}' here.`);
  }
}

/** The literal of the whole `text`; other texts are words. @throws ConfigError for a refused key. */
export function parseLiteral(text: string): Literal {
  const cursor: Cursor = { text, at: 0, strict: false };
  try {
    const literal = readLiteral(cursor);
    skipSpace(cursor);
    // A string keeps the spaces around it.
    if (cursor.at === text.length) return literal.kind === 'word' ? { kind: 'word', text } : literal;
  } catch (error) {
    if (error instanceof RefusedKey || !(error instanceof ConfigError)) throw error;
  }
  return { kind: 'word', text };
}

/**
 * Parses `name(1, [2, 3], key='text')`; the parentheses are optional. Arguments are literals, or calls of classes that
 * describe configs; named ones follow positional ones.
 *
 * @throws ConfigError with the column of the error.
 */
export function parseCall(text: string): Call {
  return readCall(text, identifier, 'Expected the name of a function here.');
}

/** Reads `Linear(inputDims=4)`, whose name may be qualified: `experiments/mine.Linear`. @throws ConfigError as `parseCall` */
export function parseClassCall(text: string): Call {
  return readCall(text, className, 'Expected the name of a class here.');
}

function readCall(text: string, namePattern: RegExp, problem: string): Call {
  const cursor: Cursor = { text, at: 0, strict: true };
  skipSpace(cursor);
  const name = match(cursor, namePattern);
  if (name === undefined) fail(cursor, problem);
  const argumentsRead = readArguments(cursor, 0);
  skipSpace(cursor);
  if (cursor.at < text.length) fail(cursor, `Nothing can follow the call of ${name}.`);
  return { name, arguments: argumentsRead, text };
}

/** The arguments in parentheses; none where there are no parentheses. */
function readArguments(cursor: Cursor, depth: number): Argument[] {
  if (depth > deepest) fail(cursor, `Literals may nest ${deepest} levels deep.`);
  const names = new Set<string>();
  if (!take(cursor, '(')) return [];
  return readItems(cursor, ')', () => {
    const argument = readArgument(cursor, depth);
    if (argument.name === undefined) {
      if (names.size > 0)
        fail(cursor, 'An argument without a name cannot follow one with a name.', argument.column);
    } else if (names.has(argument.name)) {
      fail(cursor, `The argument '${argument.name}' is given twice.`, argument.column);
    } else names.add(argument.name);
    return argument;
  });
}

function readArgument(cursor: Cursor, depth: number): Argument {
  skipSpace(cursor);
  const column = cursor.at;
  const name = match(cursor, identifier);
  if (name !== undefined && take(cursor, '=')) {
    if (refusedKeys.has(name)) fail(cursor, `'${name}' is not allowed as a name.`, column);
    return { name, value: readLiteral(cursor, depth), column };
  }
  cursor.at = column;
  return { name: undefined, value: readLiteral(cursor, depth), column };
}

/**
 * The text that `coerce` parses as `value`, with strings quoted. @throws ConfigError for values without such a text.
 */
export function formatLiteral(value: unknown, depth = 0): string {
  if (depth > deepest) throw new ConfigError(`Literals may nest ${deepest} levels deep.`);
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value === 'boolean' || value === null) return String(value);
  if (value instanceof Date && !Number.isNaN(value.getTime())) return JSON.stringify(value.toISOString());
  if (Array.isArray(value)) return `[${value.map((item) => formatLiteral(item, depth + 1)).join(', ')}]`;
  const prototype: unknown = typeof value === 'object' ? Object.getPrototypeOf(value) : undefined;
  if (prototype === Object.prototype || prototype === null) {
    const entries = Object.entries(value as object);
    return `{${entries.map(([key, item]) => `${JSON.stringify(key)}: ${formatLiteral(item, depth + 1)}`).join(', ')}}`;
  }
  throw new ConfigError(`${showValue(value)} cannot be written in a flag.`);
}
