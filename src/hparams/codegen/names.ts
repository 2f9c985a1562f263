/** @file Names and literals in generated code. */
import { formatSegment, type PathLink } from '../walking/paths.js';

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

// What an editor may not show, or show out of order.
const hidden = /[^\P{C}]|[\p{Zl}\p{Zp}]/gu;

/** A string literal. */
export function stringText(value: string): string {
  const body = JSON.stringify(value).slice(1, -1);
  const requoted = body.replaceAll(/\\"|'/g, (found) => (found === "'" ? "\\'" : '"'));
  return `'${requoted.replaceAll(hidden, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)}'`;
}

/** Whether `name` can stand as a key, or behind a dot, without quotes. */
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

/** A number, negative zero and what is no number included. */
export function numberText(value: number): string {
  if (Number.isNaN(value)) return 'Number.NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Number.POSITIVE_INFINITY' : 'Number.NEGATIVE_INFINITY';
  return Object.is(value, -0) ? '-0' : String(value);
}
