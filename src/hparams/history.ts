/** @file Histories of configs, as data and as text, and the style rules that read them. */
import { deepCopy } from './editing/edit.js';
import { ConfigError } from './errors.js';
import { showLong } from './fields/describe.js';
import { append, getOrMake } from './nodes/containers.js';
import {
  type ConfigNode,
  fieldOf,
  nodeOf,
  originText,
  requireNode,
  type Write,
  type WriteKind,
} from './nodes/node.js';
import { origin } from './nodes/record.js';
import { type Item, oneLine, pathText } from './printing/items.js';
import { type Line, linesOf, valueText } from './printing/print.js';
import { type Place, placeOf } from './source.js';
import type { AnyConfig, Tag } from './types.js';
import { formatLink } from './walking/paths.js';
import { walk } from './walking/walk.js';

/** One write. */
interface HistoryEntry {
  /** Counts all writes of the process, so that entries of different configs can be put in order. */
  readonly sequence: number;
  /** The field that was written; empty for a change of class. */
  readonly field: string;
  /** `edit` is a change inside an array or record; `tags` and `class` hold all tags, or the class, from then on. */
  readonly kind: WriteKind;
  readonly value: unknown;
  /** `file:line`, the text of a flag, or undefined where no frame of the stack was outside this library. */
  readonly where: string | undefined;
  readonly place: Place | undefined;
}

/**
 * The writes to `config`, or to one field of it, oldest first. A copy begins with the history of its original.
 *
 * @throws ConfigError for a field that neither exists nor was written when `config` had another class.
 */
export function history(config: AnyConfig, field?: string): HistoryEntry[] {
  const node = requireNode(config, 'history');
  const entries: HistoryEntry[] = [];
  for (let write = node.last; write !== undefined; write = write.previous) {
    if (field !== undefined && write.field !== field) continue;
    const { sequence, kind, value, origin: writer } = write;
    const place = typeof writer === 'string' ? undefined : placeOf(writer);
    entries.push({ sequence, field: write.field, kind, value, where: originText(writer), place });
  }
  if (field !== undefined && field !== '' && entries.length === 0) fieldOf(node, field, origin());
  return entries.reverse();
}

/** A deep copy without any history. */
export function clearHistory<C extends AnyConfig>(config: C): C {
  const made = deepCopy(config);
  walk(made, {
    enter: (node) => {
      node.last = undefined;
    },
  });
  return made;
}

/** Bounds for a config that others start from. */
interface BaselineStyle {
  /** From how many files values may come; 3 by default. */
  readonly maxFiles?: number;
  /** How often a field may be written; twice by default. */
  readonly maxWritesPerField?: number;
}

/**
 * Checks by its history that a config can be understood by reading few places, as one that others start from should be.
 * Writes by flags are in no file.
 *
 * @throws ConfigError that lists the files, and the fields that were written too often with their places.
 */
export function checkBaselineStyle(
  root: unknown,
  { maxFiles = 3, maxWritesPerField = 2 }: BaselineStyle = {},
): void {
  const files = new Set<string>();
  const problems: string[] = [];
  walk(root, {
    enter(node, path) {
      for (const [name, places] of writesByField(node, files)) {
        if (places.length <= maxWritesPerField) continue;
        const text = formatLink({ parent: path, segment: name });
        problems.push(
          `${text}: written ${places.length} times, at most ${maxWritesPerField} are fine: ${places.join(', ')}`,
        );
      }
    },
  });
  if (files.size > maxFiles) {
    const listed = [...files].sort().join(', ');
    problems.unshift(`values come from ${files.size} files, at most ${maxFiles} are fine: ${listed}`);
  }
  if (problems.length > 0) throw new ConfigError(`The config is hard to follow:\n  ${problems.join('\n  ')}`);
}

function writesByField(node: ConfigNode, files: Set<string>): Map<string, string[]> {
  const writes = new Map<string, string[]>();
  for (const { field, kind, place, where } of history(node.proxy)) {
    if (place !== undefined) files.add(place.file);
    if (kind === 'tags' || kind === 'class') continue;
    const places = writes.get(field);
    if (places === undefined) writes.set(field, [where ?? 'an unknown place']);
    else places.push(where ?? 'an unknown place');
  }
  return writes;
}

interface PrintHistoryOptions {
  /**
   * How fields show that hold their defaults and never held anything else: with ` (default)` behind them (`mark`, the
   * default), or not at all (`hide`).
   */
  readonly defaults?: 'mark' | 'hide';
}

/**
 * Every field of `root` with its value and the place where it was set, `path : value @ file:line`, and below it its
 * earlier values, newest first: `  - previously: value @ file:line`, and `  - tags: #A #B @ file:line` for changes of
 * its tags. Fields without a value are listed, too.
 */
export function printHistory(root: unknown, options: PrintHistoryOptions = {}): string {
  const text: string[] = [];
  const writes = new Map<ConfigNode, Map<string, Write[]>>();
  for (const line of linesOf(root)) {
    if (line.kind === 'label') text.push(`${line.label} : ${pathText(line.path)}`);
    else {
      if (line.kind === 'config') writes.set(line.node, writesOf(line.node));
      const past = pastOf(line, writes);
      // A container's own line shows its plain parts.
      if (line.kind === 'value' && line.item.field !== undefined && !line.item.whole) continue;
      if (options.defaults === 'hide' && line.item.state === 'default' && past.length === 0) continue;
      append(text, entryLines(line, past));
    }
  }
  return text.join('\n');
}

type WritesOfNodes = ReadonlyMap<ConfigNode, Map<string, Write[]>>;

/** The writes to each field, newest first. */
function writesOf(node: ConfigNode): Map<string, Write[]> {
  const byField = new Map<string, Write[]>();
  for (let write = node.last; write !== undefined; write = write.previous) {
    getOrMake(byField, write.field, () => []).push(write);
  }
  return byField;
}

/** The writes to the field that the line shows, newest first, and the changes of class of the config in it. */
function pastOf(line: Exclude<Line, { kind: 'label' }>, writes: WritesOfNodes): readonly Write[] {
  const { whole, owner, field } = line.item;
  const past = whole && owner !== undefined ? writes.get(owner)!.get(field!.name) : undefined;
  const classes = line.kind === 'config' ? writes.get(line.node)!.get('') : undefined;
  return [...(past ?? []), ...(classes ?? [])];
}

function entryLines(line: Exclude<Line, { kind: 'label' }>, past: readonly Write[]): string[] {
  const { item } = line;
  const value = line.kind === 'container' ? shown(item.value) : valueText(line);
  let text = `${pathText(line.path)} : ${value}${item.state === 'default' ? ' (default)' : ''}`;
  const newest = past.find((write) => write.kind !== 'tags' && write.kind !== 'class');
  // A value written while tracking was suspended has no place: all known writes are older.
  const isCurrent =
    newest !== undefined && (newest.kind === 'delete' ? item.state !== 'set' : holds(item, newest));
  if (isCurrent) text += `${newest.kind === 'delete' ? ', deleted' : ''}${at(newest)}`;
  return [text, ...past.flatMap((write) => (isCurrent && write === newest ? [] : `  - ${pastText(write)}`))];
}

function holds(item: Item, write: Write): boolean {
  const node = nodeOf(item.value);
  return node === undefined ? shown(item.value) === shown(write.value) : node === nodeOf(write.value);
}

function pastText(write: Write): string {
  if (write.kind === 'tags')
    return `tags: ${(write.value as readonly Tag[]).join(' ') || 'none'}${at(write)}`;
  if (write.kind === 'class')
    return `became a config of ${(write.value as { name: string }).name}${at(write)}`;
  return `previously: ${write.kind === 'delete' ? 'deleted' : shown(write.value)}${at(write)}`;
}

function at(write: Write): string {
  const place = originText(write.origin);
  return place === undefined ? '' : ` @ ${oneLine(place)}`;
}

function shown(value: unknown): string {
  return oneLine(showLong(value));
}
