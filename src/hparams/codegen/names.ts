/** @file Names and literals in generated code. */
import { formatSegment, type PathLink } from '../walking/paths.js';
import { type Code, text } from './code.js';

const words =
  'break case catch class const continue debugger default delete do else enum export extends false finally for ' +
  'function if import in instanceof new null return super switch this throw true try typeof var void while with ' +
  'as async await get implements interface let of package private protected public set static type yield ' +
  'abstract any boolean declare module namespace never number object string symbol undefined unknown arguments eval';

/** The names of one module. */
export class Names {
  private readonly taken = new Set([...words.split(' '), ...Object.getOwnPropertyNames(globalThis)]);
  private readonly counts = new Map<string, number>();

  /** Whether `name` can be taken as it stands. */
  isFree(name: string): boolean {
    return !this.taken.has(name);
  }

  /** Takes the first of `candidates` that is free, or the first of all with a number behind it. */
  take(candidates: readonly string[]): string {
    const free = candidates.find((name) => this.isFree(name)) ?? this.numbered(candidates[0]!);
    this.taken.add(free);
    return free;
  }

  private numbered(name: string): string {
    // Counting on from the last number keeps thousands of equal names linear.
    let count = this.counts.get(name) ?? 2;
    const stem = /\d$/.test(name) ? `${name}_` : name;
    while (this.taken.has(stem + count)) count += 1;
    this.counts.set(name, count + 1);
    return stem + count;
  }
}

/**
 * Names for what stands at `path`, the shortest first: `linear`, or `layers0`, then `encoderLayers0`. `prefix` goes before each;
 * `className` names what has no path, or whose path has no letters.
 */
export function nameCandidates(path: PathLink | undefined, className: string, prefix: string): string[] {
  const candidates: string[] = [];
  let tail = '';
  let names = 0;
  for (let at = path; at !== undefined && names < 2; at = at.parent) {
    const { segment } = at;
    tail =
      capitalized(lettersOf(typeof segment === 'string' ? segment : formatSegment(segment, true))) + tail;
    // An index or a key says nothing without the field that it belongs to.
    if (typeof segment !== 'string') continue;
    names += 1;
    candidates.push(joined(prefix, tail));
  }
  if (!candidates.some(startsWithLetter))
    return [joined(prefix, capitalized(lettersOf(className) || 'Config'))];
  return candidates.filter(startsWithLetter);
}

function joined(prefix: string, tail: string): string {
  return prefix === '' ? tail.charAt(0).toLowerCase() + tail.slice(1) : prefix + tail;
}

function startsWithLetter(name: string): boolean {
  return /^[A-Za-z]/.test(name);
}

const longestPart = 30;

/** The letters and digits of a text, as one word in camel case. */
function lettersOf(part: string): string {
  const parts = part.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  return parts
    .map((word, i) => (i === 0 ? word : capitalized(word)))
    .join('')
    .slice(0, longestPart);
}

function capitalized(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

// Characters that an editor may not show, or show out of order, or whose width no two programs agree on.
const shown =
  /[\u0020-\u007e\u00a1-\u00ac\u00ae-\u024f\u0370-\u0377\u037b-\u037f\u0384-\u0386\u0388-\u03ff\u0400-\u0482\u048a-\u052f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]/u;
const escapes: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\b': '\\b',
  '\f': '\\f',
  '\v': '\\v',
};

/** A string literal: in single quotes, unless double quotes need fewer escapes. */
export function stringText(value: string): string {
  const singles = value.split("'").length;
  const doubles = value.split('"').length;
  const quote = singles > doubles ? '"' : "'";
  let body = '';
  for (const character of value) {
    if (character === quote) body += `\\${quote}`;
    else if (character in escapes) body += escapes[character]!;
    else body += shown.test(character) ? character : escaped(character);
  }
  // The linter takes it for a template string with the wrong quotes.
  return quote + body.replaceAll('${', '$\\u007b') + quote;
}

function escaped(character: string): string {
  const point = character.codePointAt(0)!;
  return point > 0xffff ? `\\u{${point.toString(16)}}` : `\\u${point.toString(16).padStart(4, '0')}`;
}

/** Whether `name` can stand as a key, or behind a dot, without quotes. */
export function isIdentifier(name: string): boolean {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name);
}

/** A key of an object literal. */
export function keyText(key: string): string {
  const isPlain = isIdentifier(key) && [...key].every((character) => shown.test(character));
  return isPlain ? key : stringText(key);
}

const named = ['PI', 'E', 'SQRT2', 'SQRT1_2', 'LN2', 'LN10', 'LOG2E', 'LOG10E'] as const;

/** A number, negative zero and what is no number included. */
export function numberCode(value: number): Code {
  if (Number.isNaN(value)) return text('Number.NaN');
  if (!Number.isFinite(value))
    return text(value > 0 ? 'Number.POSITIVE_INFINITY' : 'Number.NEGATIVE_INFINITY');
  const isNegative = value < 0 || Object.is(value, -0);
  const sign = isNegative ? '-' : '';
  const size = Math.abs(value);
  for (const name of named) if (Math[name] === size) return text(`${sign}Math.${name}`);
  return text(sign + positiveText(size), isNegative ? 'negative' : 'number');
}

function isNearNamed(size: number): boolean {
  for (const name of named) if (Math.abs(Math[name] - size) < 1e-3) return true;
  return false;
}

function positiveText(size: number): string {
  const plain = String(size).replace('e+', 'e');
  // 3.14 would be taken for a careless pi: in the other notation it says that it is meant.
  if (!isNearNamed(size)) return plain;
  const [whole, fraction] = plain.split('.') as [string, string];
  return `${(whole + fraction).replace(/^0+/, '')}e-${fraction.length}`;
}
