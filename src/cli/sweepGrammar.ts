/** @file Grammar of sweeps: `path=1e-3,1e-4`, ranges, products, and short names of combinations. */
import { createHash } from 'node:crypto';
import { ConfigError, problemAt, shortPaths } from '../hparams/index.js';

/** A swept path and the texts of its values. */
export interface SweptPath {
  readonly path: string;
  readonly texts: readonly string[];
}

/** A path and the text of its value, as in `--set path=text`. */
export interface Setting {
  readonly path: string;
  readonly text: string;
}

const quoted = /'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*"/y;
const openers: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/** Splits `text` at separators outside of brackets and quotes; pieces have their columns. */
function splitOutside(text: string, separator: string): { part: string; column: number }[] {
  const parts: { part: string; column: number }[] = [];
  const closers: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!;
    // A quote within a word is an apostrophe.
    if (/['"]/.test(character) && /[\s,:=([{]|^$/.test(text[at - 1] ?? '')) {
      quoted.lastIndex = at;
      const string = quoted.exec(text)?.[0];
      if (string !== undefined) at += string.length - 1;
    } else if (openers[character] !== undefined) closers.push(openers[character]);
    else if (character === closers.at(-1)) closers.pop();
    else if (character === separator && closers.length === 0) {
      parts.push({ part: text.slice(start, at), column: start });
      start = at + 1;
    }
  }
  parts.push({ part: text.slice(start), column: start });
  return parts;
}

/** Limit on values, which catches slips such as `1..1e9`. */
const mostValues = 10_000;

/**
 * Splits `path=value` at the first `=` outside of brackets and quotes, since keys may contain one. Undefined without a
 * `=` or a path.
 */
export function splitSetting(text: string): Setting | undefined {
  const [first] = splitOutside(text, '=');
  const path = first!.part.trim();
  const end = first!.part.length;
  return path === '' || end >= text.length ? undefined : { path, text: text.slice(end + 1) };
}

/**
 * Parses `path=a,b,c`: values as in `--set`, separated by commas outside of brackets and quotes. `1..4` means 1, 2, 3,
 * 4; `0..1:0.25` has steps of 0.25; `log(1e-4,1e-1,4)` is 4 log-spaced values from 1e-4 to 1e-1. Quoted, they are plain
 * texts.
 *
 * @throws ConfigError that points at the column of the error.
 */
export function parseSweptPath(text: string): SweptPath {
  const setting = splitSetting(text);
  if (setting === undefined) throw new ConfigError('Expected path=value,value or the call of a function.');
  const offset = text.length - setting.text.length;
  const texts: string[] = [];
  for (const { part, column } of splitOutside(setting.text, ',')) {
    if (part.trim() === '') throw problemAt('Expected a value here.', text, offset + column);
    for (const value of valuesOf(part.trim(), (problem) => problemAt(problem, text, offset + column))) {
      if (texts.includes(value)) throw problemAt(`The value ${value} is there twice.`, text, offset + column);
      if (texts.push(value) > mostValues)
        throw problemAt(`More than ${mostValues} values.`, text, offset + column);
    }
  }
  return { path: setting.path, texts };
}

type Fail = (problem: string) => ConfigError;

const number = String.raw`[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?`;
const range = new RegExp(`^(${number})\\.\\.(${number})(?::(${number}))?$`, 'i');
const logRange = new RegExp(`^log\\(\\s*(${number})\\s*,\\s*(${number})\\s*,\\s*(\\d+)\\s*\\)$`, 'i');

function* valuesOf(text: string, fail: Fail): Iterable<string> {
  const counted = range.exec(text);
  const spread = logRange.exec(text);
  if (counted) yield* count(Number(counted[1]), Number(counted[2]), counted[3], fail);
  else if (spread) yield* spreadOut(Number(spread[1]), Number(spread[2]), Number(spread[3]), fail);
  else if (/^log\(/.test(text)) throw fail('Expected log(first,last,number), such as log(1e-4,1e-1,4).');
  else yield text;
}

/** Rounds away the error of adding steps such as 0.1, beyond the twelfth digit. */
function round(value: number): string {
  return String(Number(value.toPrecision(12)));
}

function* count(first: number, last: number, stepText: string | undefined, fail: Fail): Iterable<string> {
  const step = stepText === undefined ? 1 : Number(stepText);
  if (![first, last, step].every(Number.isFinite)) throw fail('A range has finite bounds and steps.');
  if (step === 0) throw fail('A range cannot count in steps of 0.');
  if ((last - first) * step < 0) {
    const way = step > 0 ? `upwards; write ${first}..${last}:-1 to count down` : 'downwards';
    throw fail(`This range is empty: it counts ${way}.`);
  }
  const steps = Math.floor((last - first) / step + 1e-9);
  for (let i = 0; i <= steps; i += 1) yield round(first + i * step);
}

function* spreadOut(first: number, last: number, size: number, fail: Fail): Iterable<string> {
  if (!(first > 0 && last > 0 && Number.isFinite(first) && Number.isFinite(last)))
    throw fail('log() expects positive, finite bounds.');
  if (size < 2) throw fail('log() expects a number of values of 2 or more.');
  for (let i = 0; i < size; i += 1) yield round(first * (last / first) ** (i / (size - 1)));
}

/**
 * The Cartesian product of the axes; the last one varies fastest.
 *
 * @throws ConfigError for more than 10,000 combinations.
 */
export function product<T>(axes: readonly (readonly T[])[]): T[][] {
  const size = axes.reduce((sum, axis) => sum * axis.length, 1);
  if (size > mostValues) {
    throw new ConfigError(`A sweep of ${size} runs is too large: the most is ${mostValues}.`);
  }
  let combinations: T[][] = [[]];
  for (const axis of axes) {
    combinations = combinations.flatMap((rest) => axis.map((choice) => [...rest, choice]));
  }
  return combinations;
}

const longestName = 120;

/**
 * Directory names of combinations: `learningRate=0.001,numLayers=4`, with paths shortened as far as they stay distinct.
 * Where characters were dropped, or two names differ only in case, a digest of the settings follows, so that a
 * combination has the same name in every sweep over the same paths.
 */
export function combinationNames(combinations: readonly (readonly Setting[])[]): string[] {
  const short = shortPaths(new Set(combinations.flatMap((settings) => settings.map(({ path }) => path))));
  const plain = combinations.map((settings) =>
    // A tag, `#LearningRate`, is named without its sign.
    settings.map(({ path, text }) => `${short.get(path)!.replace(/^#/, '')}=${unquoted(text)}`).join(','),
  );
  const counts = new Map<string, number>();
  for (const name of plain)
    counts.set(safe(name).toLowerCase(), (counts.get(safe(name).toLowerCase()) ?? 0) + 1);
  return plain.map((name, i) => {
    const cleaned = safe(name);
    if (name !== '' && cleaned === name && counts.get(cleaned.toLowerCase()) === 1) return name;
    const settings = combinations[i]!.map(({ path, text }) => `${path}=${text}`);
    const digest = createHash('sha256').update(JSON.stringify(settings)).digest('hex').slice(0, 8);
    return cleaned === '' ? `run-${digest}` : `${cleaned}-${digest}`;
  });
}

function safe(name: string): string {
  return name
    .replaceAll(/[^\w.,=+-]+/g, '_')
    .replace(/^[.-]+/, '')
    .slice(0, longestName);
}

function unquoted(text: string): string {
  return /^"[\w.+-]+"$/.test(text) ? text.slice(1, -1) : text;
}
