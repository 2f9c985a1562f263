/** @file Configs as text: one `path : value` a line, as in Pax's model_params.txt. */
import { styleText } from 'node:util';
import { describeSchema } from '../fields/describe.js';
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
