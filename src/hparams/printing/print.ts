/** @file Configs as text: one `path : value` a line, as in Pax's model_params.txt. */
import { styleText } from 'node:util';
import { describeSchema } from '../fields/describe.js';
import { mapContainers } from '../nodes/containers.js';
import type { Item } from './items.js';
import { isOptional, type Line, linesOf, pathText, valueText } from './lines.js';

export interface PrintOptions {
  /** Writes `path : type = value`. */
  readonly types?: boolean;
  /**
   * How values show that nobody set: like the others (`show`), dimmed in a terminal (`dim`), with ` (default)` behind
   * them (`mark`), or not at all (`hide`).
   */
  readonly defaults?: 'show' | 'dim' | 'mark' | 'hide';
  /** Writes `path #Tag : value` for fields with tags. */
  readonly tags?: boolean;
  /** Whether fields without a value are listed, as `<not set>` or `<not set, optional>`; the default is true. */
  readonly unset?: boolean;
}

/**
 * Every field of `root` with its value, defaults filled in, as lines `path : value`. A sub-config's line gives its
 * class; a config that stands in several places is printed at the first, `same as` it at the others. Paths of more
 * than 64 steps begin anew from a label: `@1 : path`.
 */
export function print(root: unknown, options: PrintOptions = {}): string {
  const lines: string[] = [];
  for (const line of linesOf(root, options.defaults === 'hide')) {
    if (line.kind === 'label') lines.push(`${line.label} : ${pathText(line.path)}`);
    else if (line.kind !== 'container' && (options.unset !== false || !isMissing(line.item))) {
      lines.push(lineText(line, options));
    }
  }
  return lines.join('\n');
}

function lineText(line: Exclude<Line, { kind: 'label' }>, options: PrintOptions): string {
  const { item } = line;
  const type = options.types === true ? typeText(item) : '';
  const tags = options.tags === true ? item.tags.map((tag) => ` ${tag}`).join('') : '';
  const text = `${pathText(line.path)}${tags} : ${type}${valueText(line)}`;
  if (item.state !== 'default') return text;
  if (options.defaults === 'mark') return isOptional(item) ? text : `${text} (default)`;
  return options.defaults === 'dim' ? styleText('dim', text, { validateStream: false }) : text;
}

function isMissing(item: Item): boolean {
  return item.state === 'unset' || isOptional(item);
}

function typeText(item: Item): string {
  return item.schema === undefined ? '' : `${describeSchema(item.schema)} = `;
}

const rootKey = '<root>';

export interface FlattenOptions {
  /** Adds an entry for each config: its path, `<root>` for the outermost, and the name of its class. */
  readonly classNames?: boolean;
}

/**
 * What was set in `root`, by path: neither defaults nor fields without a value. Containers without configs are one
 * value. A config that stands in several places is written out at the first, the others say `same as` it; beyond 64
 * steps a path says `continues at @1`, and the entries behind it begin with `@1`.
 */
export function asDictFlattened(root: unknown, options: FlattenOptions = {}): Record<string, unknown> {
  const entries: [string, unknown][] = [];
  for (const line of linesOf(root, true)) {
    if (line.kind === 'label') entries.push([line.path, `continues at ${line.label}`]);
    else if (line.kind === 'again' || (line.kind === 'config' && options.classNames === true)) {
      entries.push([line.path || rootKey, valueText(line)]);
    } else if (line.kind === 'value' && line.item.state === 'set') {
      // A copy: an edit of it must not reach the config unseen.
      entries.push([line.path || rootKey, mapContainers(line.item.value, (leaf) => leaf)]);
    }
  }
  return Object.fromEntries(entries);
}
