/** @file Searching a config for names, classes and values. */

import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { append } from '../nodes/containers.js';
import { type Line, linesOf, pathText, valueText } from './lines.js';
import { Places } from './places.js';

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
