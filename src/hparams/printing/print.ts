/** @file Configs as lines of paths and values: printed, flattened, searched and compared. */
import { styleText } from 'node:util';
import { ConfigError } from '../errors.js';
import { describeSchema, showValue } from '../fields/describe.js';
import { mapContainers } from '../nodes/containers.js';
import { type ConfigNode, nodeOf } from '../nodes/node.js';
import { formatSegment } from '../walking/paths.js';
import {
  ClassLabels,
  fieldItems,
  type Item,
  isOptional,
  isSplit,
  kindText,
  leafText,
  partItems,
  pathText,
  rootItem,
} from './items.js';

export interface PrintOptions {
  /** Writes `path : type = value`. */
  readonly types?: boolean;
  /**
   * Display of unset values: like the others (`show`), dimmed in a terminal (`dim`), with ` (default)` behind
   * them (`mark`), or not at all (`hide`).
   */
  readonly defaults?: 'show' | 'dim' | 'mark' | 'hide';
  /** Writes `path #Added -#Removed : value` for fields whose tags are not those that their class declares. */
  readonly tags?: boolean;
  /** Whether fields without a value are listed, as `<not set>` or `<not set, optional>`; the default is true. */
  readonly unset?: boolean;
}

/**
 * Every field of `root` with its value, defaults filled in, as lines `path : value`. A sub-config's line gives its
 * class; a config in several places is printed at the first, `same as` it at the others. Paths of more
 * than 64 steps begin again from a label: `@1 : path`.
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

interface FlattenOptions {
  /** Adds an entry for each config: its path, `<root>` for the outermost, and the name of its class. */
  readonly classNames?: boolean;
}

/**
 * Explicit values in `root`, by path, without defaults and unset fields. Containers without configs are one value. A
 * config in several places is written out at the first, the others are `same as` it; beyond 64 steps a path says
 * `continues at @1`, and the entries below it begin with `@1`.
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

interface GrepOptions {
  /** Lines that match this are left out. */
  readonly exclude?: string | RegExp;
  /** Whether the pattern is case-sensitive; the default is the flag of a regular expression, and true for a string. */
  readonly caseSensitive?: boolean;
}

// A diamond of sixty levels has more paths than can be written.
const mostPlaces = 16;

/**
 * The lines `path : value` of `root`, as `print` has them, that match a regular expression. A config in
 * several places has its lines at 16 of them at most; at others it is `same as` the first. Long paths begin with a
 * label, as in `print`; the labels in use come first.
 *
 * @throws ConfigError for a pattern that is not a regular expression.
 */
export function grep(root: unknown, pattern: string | RegExp, options: GrepOptions = {}): string {
  const wanted = toPattern(pattern, options);
  const unwanted = options.exclude === undefined ? undefined : toPattern(options.exclude, options);
  const found: string[] = [];
  const labels = new Map<string, string>();
  for (const line of linesOf(root, false, mostPlaces)) {
    if (line.kind === 'label') labels.set(line.label, line.path);
    else if (line.kind !== 'container') {
      const text = lineText(line, {});
      if (wanted.test(text) && unwanted?.test(text) !== true) found.push(text);
    }
  }
  return [...labelsIn(found, labels), ...found].join('\n');
}

/** Meanings of the labels in the lines, and of the labels in these. */
function labelsIn(found: readonly string[], labels: ReadonlyMap<string, string>): string[] {
  const used = new Set<string>();
  for (const text of found) for (const label of labelAt(text)) used.add(label);
  for (const label of used) for (const outer of labelAt(labels.get(label)!)) used.add(outer);
  return [...labels].flatMap(([label, path]) => (used.has(label) ? [`${label} : ${pathText(path)}`] : []));
}

function labelAt(text: string): string[] {
  return /^@\d+/.exec(text)?.slice() ?? [];
}

function toPattern(pattern: string | RegExp, { caseSensitive }: GrepOptions): RegExp {
  if (typeof pattern !== 'string' && !(pattern instanceof RegExp))
    throw new ConfigError(`grep() takes a regular expression or its text, got ${showValue(pattern)}.`);
  const source = typeof pattern === 'string' ? pattern : pattern.source;
  const given = typeof pattern === 'string' ? '' : pattern.flags.replace(/[gy]/g, '');
  const flags = caseSensitive === undefined ? given : given.replace('i', '') + (caseSensitive ? '' : 'i');
  try {
    return new RegExp(source, flags);
  } catch (cause) {
    throw new ConfigError(
      `grep() takes a regular expression, got ${showValue(source)}: ${(cause as Error).message}.`,
      { cause },
    );
  }
}

/**
 * All differences of two configs (or containers of configs), as sorted lines; an empty list if there are none. It is
 * stricter than `isEqual`: explicit values differ from equal defaults, and tags count. Differences below a difference
 * are left out.
 */
export function describeDifferences(left: unknown, right: unknown): string[] {
  const labels = ClassLabels.in(left, right);
  const [ones, others] = [textsOf(left, labels), textsOf(right, labels)];
  const differs = (path: string): boolean => ones.get(path) !== others.get(path);
  const paths = new Set([...outermost(ones, differs), ...outermost(others, differs)]);
  return [...paths]
    .map((path) => `${pathText(path)}: ${ones.get(path) ?? '<missing>'} ≠ ${others.get(path) ?? '<missing>'}`)
    .sort();
}

/** Texts by path, outer ones first. */
function textsOf(root: unknown, labels: ClassLabels): Map<string, string> {
  const texts = new Map<string, string>();
  for (const line of linesOf(root, false, 1, labels)) {
    if (line.kind === 'label' || line.kind === 'container') continue;
    const mark = line.item.state === 'default' && !isOptional(line.item) ? ' (default)' : '';
    texts.set(line.path, [valueText(line) + mark, ...line.item.tags].join(' '));
  }
  return texts;
}

/** The paths that differ, without those that lead into another. */
function outermost(texts: ReadonlyMap<string, string>, differs: (path: string) => boolean): string[] {
  const found: string[] = [];
  for (const path of texts.keys()) {
    const last = found.at(-1);
    const isInside =
      last !== undefined && path.startsWith(last) && (last === '' || /^[.[]/.test(path.slice(last.length)));
    if (!isInside && differs(path)) found.push(path);
  }
  return found;
}

// Written out in full, the paths of a long chain would take space that grows with the square of its length.
const deepestPath = 64;

/** A line of the output. */
export type Line =
  /** A value without configs, or a missing one. */
  | { readonly kind: 'value'; readonly path: string; readonly item: Item }
  /** An array or record with configs in it; its parts follow. */
  | { readonly kind: 'container'; readonly path: string; readonly item: Item }
  /** A config whose fields follow. */
  | {
      readonly kind: 'config';
      readonly path: string;
      readonly item: Item;
      readonly node: ConfigNode;
      readonly text: string;
    }
  /** A config that was met before, first at `first`. */
  | {
      readonly kind: 'again';
      readonly path: string;
      readonly item: Item;
      readonly node: ConfigNode;
      readonly first: string;
    }
  /** The path grew too long: from here on it begins with `label`. */
  | { readonly kind: 'label'; readonly path: string; readonly label: string; readonly node: ConfigNode };

interface Open {
  readonly item: Item;
  readonly path: string;
  readonly depth: number;
  readonly parent: Open | undefined;
}

/**
 * The lines of `root`, outer before inner. The path of the root is the empty string. A config's fields are shown where it
 * is met first, and at `places` places at most.
 */
export function* linesOf(
  root: unknown,
  hideDefaults = false,
  places = 1,
  labels = ClassLabels.in(root),
): Generator<Line> {
  const met = new Map<ConfigNode, { first: string; times: number }>();
  let count = 0;
  const open: Open[] = [{ item: rootItem(root), path: '', depth: 0, parent: undefined }];
  const push = (items: Item[], parent: Open, path: string, depth: number): void => {
    for (const item of items.reverse()) {
      open.push({ item, path: path + formatSegment(item.segment!, path === ''), depth: depth + 1, parent });
    }
  };
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { item, path, depth } = next;
    const node = nodeOf(item.value);
    const known = node && met.get(node);
    if (node === undefined) {
      const split = isSplit(item.value);
      yield { kind: split ? 'container' : 'value', path, item };
      if (split) push(partItems(item), next, path, depth);
    } else if (known !== undefined && (known.times >= places || isInside(node, next))) {
      yield { kind: 'again', path, item, node, first: known.first };
    } else {
      const label = depth < deepestPath ? undefined : `@${++count}`;
      if (label !== undefined) yield { kind: 'label', path, label, node };
      const prefix = label ?? path;
      met.set(node, { first: known?.first ?? prefix, times: (known?.times ?? 0) + 1 });
      yield { kind: 'config', path: prefix, item, node, text: kindText(node, labels) };
      push(fieldItems(node, item, hideDefaults), next, prefix, label === undefined ? depth : 0);
    }
  }
}

/** Whether `node` contains itself. */
function isInside(node: ConfigNode, { parent }: Open): boolean {
  for (let at = parent; at !== undefined; at = at.parent) if (nodeOf(at.item.value) === node) return true;
  return false;
}

/** The text behind the line's path. */
export function valueText(line: Exclude<Line, { kind: 'label' }>): string {
  if (line.kind === 'config') return line.text;
  if (line.kind === 'again') return `same as ${pathText(line.first)}`;
  return leafText(line.item);
}
