/** @file Paths into configs: `a.b[0].c['k']`, as text and as segments. */
import { ConfigError } from '../errors.js';

/** A step: a field's name, an index of an array, or a key of a record. */
export type Segment = string | number | { readonly key: string };

/** A path as a chain of steps from its end to the root: one more step costs nothing, however deep it is. */
export interface PathLink {
  readonly parent: PathLink | undefined;
  readonly segment: Segment;
}

/** The steps of a chain, from the root. */
export function segmentsOf(link: PathLink | undefined): Segment[] {
  const segments: Segment[] = [];
  for (let at = link; at !== undefined; at = at.parent) segments.push(at.segment);
  return segments.reverse();
}

/** The text of a path; the empty string is the root. */
export function formatPath(segments: readonly Segment[]): string {
  let text = '';
  for (const segment of segments) text += formatSegment(segment, text === '');
  return text;
}

/** The text of a path, of a long one its beginning and end alone. */
export function shorten(path: string): string {
  return path.length <= 200 ? path : `${path.slice(0, 100)}…${path.slice(-99)}`;
}

const identifier = /^[A-Za-z_$][\w$-]*$/;
// A key may hold anything, but a path stays on one line.
const escapes: Readonly<Record<string, string>> = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\\': '\\\\',
  "'": "\\'",
};
/** Characters that control a terminal, break a line or set the direction of text. */
export const controls = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u206a-\u206f]/gu;
const unescapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

/** The text of one step, as it is at the beginning of a path or behind another. */
export function formatSegment(segment: Segment, first: boolean): string {
  if (typeof segment === 'number') return `[${segment}]`;
  if (typeof segment === 'string' && identifier.test(segment)) return first ? segment : `.${segment}`;
  const key = typeof segment === 'string' ? segment : segment.key;
  return `['${key.replaceAll(/[\\']/g, escaped).replaceAll(controls, escaped)}']`;
}

/** An escape for a character that a line must not hold. */
export function escaped(character: string): string {
  return escapes[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Whether two steps lead to the same part: a field and a key of one name do, `[3]` and `['3']` do not. */
export function isSameStep(a: Segment, b: Segment): boolean {
  if (typeof a === 'number' || typeof b === 'number') return a === b;
  return (typeof a === 'string' ? a : a.key) === (typeof b === 'string' ? b : b.key);
}

/** The text of a chain of steps. */
export function formatLink(link: PathLink | undefined): string {
  return formatPath(segmentsOf(link));
}

/**
 * The text of a path, of a long one its end alone; `<root>` for the empty one. Written out in full, the paths of a chain
 * would take space that grows with the square of its length.
 */
export function shortPath(link: PathLink | undefined, mostSteps = 40): string {
  const segments: Segment[] = [];
  let at = link;
  for (; at !== undefined && segments.length < mostSteps; at = at.parent) segments.push(at.segment);
  const text = formatPath(segments.reverse());
  if (text === '') return '<root>';
  return at === undefined ? text : `…${text.startsWith('[') ? '' : '.'}${text}`;
}

const step = /\.?([A-Za-z_$][\w$-]*)|\[(-?\d+)\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]/sy;

/** Parses a path. @throws ConfigError with the position of the error. */
export function parsePath(text: string): Segment[] {
  const segments: Segment[] = [];
  let at = 0;
  while (at < text.length) {
    step.lastIndex = at;
    const match = step.exec(text);
    const dotted = match?.[0].startsWith('.') === true;
    const misplaced = match?.[1] !== undefined && dotted === (segments.length === 0);
    if (match === null || misplaced) {
      throw new ConfigError(
        `The path '${text}' cannot be read from '${text.slice(at)}' on. Paths look like a.b[0].c['key'].`,
        { path: text },
      );
    }
    if (match[1] !== undefined) segments.push(match[1]);
    else if (match[2] !== undefined) segments.push(Number(match[2]));
    else segments.push({ key: withoutEscapes(match[3]!.slice(1, -1)) });
    at = step.lastIndex;
  }
  return segments;
}

function withoutEscapes(text: string): string {
  return text.replaceAll(/\\(?:u([\da-f]{4})|(.))/gs, (_, code?: string, character?: string) =>
    code === undefined
      ? (unescapes[character!] ?? character!)
      : String.fromCharCode(Number.parseInt(code, 16)),
  );
}
