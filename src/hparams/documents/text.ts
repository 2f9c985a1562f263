/** @file Texts of documents: their bytes and limits, and the places of their parts by line and by path. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { ConfigError } from '../errors.js';
import type { PathLink, Segment } from '../walking/paths.js';
import { deepestDocument, isRecord } from './document.js';

/** A place in a text, counted from 1. */
export interface Spot {
  readonly line: number;
  readonly column: number;
}

/** Result of a parser. */
export interface Parsed {
  readonly value: unknown;
  /** Name of the text in messages. */
  readonly file?: string | undefined;
  /** Place of the part `key` of a parsed array or record. */
  readonly spotOf?: (owner: object, key: string | number) => Spot | undefined;
  /** Most values that the text may expand to, if parts of it can be repeated. */
  readonly mostValues?: number;
}

/** Lines and columns of a text's offsets. */
export class Lines {
  private readonly starts: number[] = [0];

  constructor(text: string) {
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) this.starts.push(at + 1);
  }

  spotAt(offset: number): Spot {
    let low = 0;
    for (let high = this.starts.length; high - low > 1; ) {
      const middle = (low + high) >> 1;
      if (this.starts[middle]! <= offset) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: offset - this.starts[low]! + 1 };
  }
}

/** `file:line:column`, the column where it is given; for a text without a file, in words. */
export function formatSpot(
  file: string | undefined,
  { line, column }: { line: number; column?: number },
): string {
  if (file === undefined) return `line ${line}${column === undefined ? '' : `, column ${column}`}`;
  return `${file}:${line}${column === undefined ? '' : `:${column}`}`;
}

/** Refuses a text that is empty or too long; a byte order mark is taken off. */
export function checkText(text: string, maxBytes: number, file?: string): string {
  const place = file;
  if (text.length > maxBytes) throw tooLong(text.length, maxBytes, file);
  const plain = text.startsWith('\uFEFF') ? text.slice(1) : text;
  if (plain.trim() === '') throw new ConfigError('The config document is empty.', { place });
  return plain;
}

function tooLong(bytes: number, maxBytes: number, place: string | undefined): ConfigError {
  return new ConfigError(
    `The config document has ${bytes} bytes; at most ${maxBytes} are read. The option maxBytes sets the limit.`,
    { place },
  );
}

/** The text of a file. @throws ConfigError for one that cannot be read, is too long, or is not text in UTF-8. */
export function readText(file: string, maxBytes: number): string {
  return checkText(decode(readBytes(file, maxBytes), file), maxBytes, file);
}

function readBytes(file: string, maxBytes: number): Buffer {
  let handle: number | undefined;
  try {
    // Opening a pipe without a writer would block; a device may be endless.
    handle = openSync(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const status = fstatSync(handle);
    if (!status.isFile()) throw new ConfigError(`'${file}' is not a file.`, { place: file });
    if (status.size > maxBytes) throw tooLong(status.size, maxBytes, file);
    return readFileSync(handle);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError(`'${file}' cannot be read: ${(error as Error).message}`, { cause: error });
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

function decode(bytes: Buffer, place: string): string {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    throw new ConfigError('The config document is in UTF-16; it must be in UTF-8.', { place });
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new ConfigError('The config document is not text in UTF-8.', { place, cause: error });
  }
}

/** The path `inner` seen from the config at `outer`. */
export function joinPaths(outer: string, inner: string): string {
  if (outer === '<root>') return inner;
  if (inner === '<root>') return outer;
  return inner.startsWith('[') ? outer + inner : `${outer}.${inner}`;
}

/** The first path to each entry of a document, found by following the references from the root. */
export function entryLinks(root: unknown, entries: readonly unknown[]): (PathLink | undefined)[] {
  const links: (PathLink | undefined)[] = [];
  const seen = new Set<number>();
  const open: { value: unknown; link: PathLink | undefined; depth: number; isEntry: boolean }[] = [
    { value: root, link: undefined, depth: 0, isEntry: false },
  ];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, link, depth, isEntry } = next;
    if (typeof value !== 'object' || value === null || depth > deepestDocument) continue;
    const number = isRecord(value) ? value.$config : undefined;
    if (typeof number === 'number') {
      if (seen.has(number)) continue;
      seen.add(number);
      links[number] = link;
      const entry = entries[number];
      const values = isRecord(entry) ? (entry.values ?? entry) : undefined;
      open.push({ value: values, link, depth: 0, isEntry: true });
      continue;
    }
    const keys = Object.keys(value).reverse();
    for (const key of keys) {
      const segment: Segment = Array.isArray(value) ? Number(key) : isEntry ? key : { key };
      const part = (value as Record<string, unknown>)[key];
      open.push({ value: part, link: { parent: link, segment }, depth: depth + 1, isEntry: false });
    }
  }
  return links;
}
