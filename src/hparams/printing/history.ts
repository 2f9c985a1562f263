/** @file The history of every field of a config as text. */

import { showLong } from '../fields/describe.js';
import { append } from '../nodes/containers.js';
import { type ConfigNode, nodeOf, originText, type Write } from '../nodes/node.js';
import type { Tag } from '../types.js';
import { type Item, type Line, linesOf, oneLine, pathText, valueText } from './lines.js';

export interface PrintHistoryOptions {
  /**
   * How fields show that hold their defaults and never held anything else: with ` (default)` behind them (`mark`, the
   * default), or not at all (`hide`).
   */
  readonly defaults?: 'mark' | 'hide';
}

/**
 * Every field of `root` with its value and the place where it was set, `path : value @ file:line`, and below it what it
 * was before, newest first: `  - previously: value @ file:line`, and `  - tags: #A #B @ file:line` where its tags changed.
 * Fields without a value are listed, too.
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
    const known = byField.get(write.field);
    if (known === undefined) byField.set(write.field, [write]);
    else known.push(write);
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
  // A value that was written while nobody kept a record has no place: all that is known is older.
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
