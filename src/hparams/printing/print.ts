/** @file Configs as lines of paths and values: printed, as a flat record, and searched. */
import { styleText } from 'node:util';
import { ConfigError } from '../errors.js';
import { describeSchema, showValue } from '../fields/describe.js';
import { append, mapContainers } from '../nodes/containers.js';
import type { ConfigNode } from '../nodes/node.js';
import { type Item, isOptional, type Line, linesOf, pathText, valueText } from './lines.js';

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

export interface GrepOptions {
  /** Lines that match this are left out. */
  readonly exclude?: string | RegExp;
  /** Whether capital letters differ from small ones; the default is what the pattern says, and true for a string. */
  readonly caseSensitive?: boolean;
}

/**
 * The lines `path : value` of `root`, as `print` has them, that match a regular expression. A config that stands in
 * several places has its lines under each of its paths, under 16 at most: then the last one says so. Long paths begin
 * with a label, as in `print`; the labels in use come first.
 *
 * @throws ConfigError for a pattern that is not a regular expression.
 */
export function grep(root: unknown, pattern: string | RegExp, options: GrepOptions = {}): string {
  const wanted = toPattern(pattern, options);
  const unwanted = options.exclude === undefined ? undefined : toPattern(options.exclude, options);
  const lines = [...linesOf(root)];
  const places = new Places();
  for (const line of lines) places.add(line);
  const found: string[] = [];
  const labels = new Map<string, string>();
  for (const line of lines) {
    if (line.kind === 'label') labels.set(line.label, line.path);
    else if (line.kind === 'value' || line.kind === 'config') {
      const { texts, more } = placesOf(line, places);
      const matching = texts.filter((text) => wanted.test(text) && unwanted?.test(text) !== true);
      if (more && matching.length > 0) matching.push(`${matching.pop()} (and at other places)`);
      append(found, matching);
    }
  }
  return [...labelsIn(found, labels), ...found].join('\n');
}

function placesOf(
  line: Line & { kind: 'value' | 'config' },
  places: Places,
): { texts: string[]; more: boolean } {
  const value = ` : ${valueText(line)}`;
  if (line.kind === 'config') {
    const { paths, more } = places.pathsTo(line.node);
    return { texts: paths.map((path) => pathText(path) + value), more };
  }
  const { owner } = line.item;
  if (owner === undefined) return { texts: [pathText(line.path) + value], more: false };
  const { paths, more } = places.pathsTo(owner);
  const steps = line.path.slice(places.firstPathTo(owner).length);
  return { texts: paths.map((path) => pathText(path + steps) + value), more };
}

/** What the labels in the lines stand for, and the labels in that. */
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

/** One place of a config: the config around it, if there is one, and the steps from there. */
interface Reference {
  readonly around: ConfigNode | undefined;
  readonly steps: string;
}

/** The beginning of a path on the way up from a config. */
interface Climb {
  /** The config that the steps lead from; undefined at the root. */
  readonly node: ConfigNode | undefined;
  readonly steps: string;
  readonly length: number;
  readonly below: Climb | undefined;
}

/** The paths to a config. */
interface Paths {
  readonly paths: readonly string[];
  /** Whether there are others. */
  readonly more: boolean;
}

// A diamond of sixty levels has more paths than can be written.
const mostPaths = 16;
// From so far up on, only the first path is followed.
const mostSteps = 64;

/** The places of the configs in a graph, whose lines it is told in their order. */
class Places {
  private readonly references = new Map<ConfigNode, Reference[]>();
  private readonly first = new Map<ConfigNode, string>();
  /** The root, and configs with a label: one name is enough. */
  private readonly named = new Set<ConfigNode>();
  private readonly known = new Map<ConfigNode, Paths>();

  add(line: Line): void {
    if (line.kind === 'label') this.named.add(line.node);
    if (line.kind !== 'config' && line.kind !== 'again') return;
    if (line.kind === 'config') this.first.set(line.node, line.path);
    if (line.path === '') this.named.add(line.node);
    if (this.named.has(line.node)) return;
    const around = line.item.owner;
    const steps = line.path.slice(around === undefined ? 0 : this.first.get(around)!.length);
    const references = this.references.get(line.node);
    if (references === undefined) this.references.set(line.node, [{ around, steps }]);
    else references.push({ around, steps });
  }

  /** The path of the lines of `node`. */
  firstPathTo(node: ConfigNode): string {
    return this.first.get(node)!;
  }

  /** Paths to `node`, in the order of the graph, at most 16. All lines must have been added. */
  pathsTo(node: ConfigNode): Paths {
    let paths = this.known.get(node);
    if (paths === undefined) this.known.set(node, (paths = this.climb(node)));
    return paths;
  }

  private climb(start: ConfigNode): Paths {
    const paths = new Set<string>();
    const open: Climb[] = [{ node: start, steps: '', length: 0, below: undefined }];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (paths.size > mostPaths) break;
      const { node } = at;
      if (node === undefined) paths.add(at.steps);
      else if (this.named.has(node) || at.length >= mostSteps) paths.add(this.first.get(node)! + at.steps);
      else append(open, this.above(node, at));
    }
    return { paths: [...paths].slice(0, mostPaths), more: paths.size > mostPaths };
  }

  /** One step up, last place first. */
  private above(node: ConfigNode, below: Climb): Climb[] {
    return this.references
      .get(node)!
      .filter(({ around }) => around === undefined || !isBelow(around, below))
      .map(({ around, steps }) => ({
        node: around,
        steps: steps + below.steps,
        length: below.length + 1,
        below,
      }))
      .reverse();
  }
}

function isBelow(node: ConfigNode, climb: Climb): boolean {
  for (let at: Climb | undefined = climb; at !== undefined; at = at.below) if (at.node === node) return true;
  return false;
}
