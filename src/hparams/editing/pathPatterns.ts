/** @file Patterns of paths: `**.keepProb` means the field at any depth, `task.*.name` one level below `task`. */
import { didYouMean } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import type { ConfigNode } from '../nodes/node.js';
import { formatPath, type Segment, segmentsOf } from '../walking/paths.js';
import { type Place, placesIn } from './listPaths.js';

/** `**`, or a step: a name in which `*` is any text, or in brackets an index, a quoted key or `*`. */
const level = /\.?(\*\*|[\w$*-]+)|\[(\*|-?\d+)\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]/sy;

/** Whether a path is a pattern: a `*` that stands in no quoted key. */
export function isPathPattern(path: string): boolean {
  return path.replaceAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/gs, '').includes('*');
}

/** The levels of a pattern. @throws ConfigError with the position of the error. */
function levelsOf(pattern: string): string[] {
  const levels: string[] = [];
  for (let at = 0; at < pattern.length; at = level.lastIndex) {
    level.lastIndex = at;
    const match = level.exec(pattern);
    if (match === null || (match[1] !== undefined && match[0].startsWith('.') !== at > 0))
      throw new ConfigError(
        `The pattern '${pattern}' cannot be read from '${pattern.slice(at)}' on. ` +
          'Patterns look like task.**.keepProb or datasets[*].batchSize: * is one level, ** any number of them.',
        { path: pattern },
      );
    levels.push(match[1] ?? match[2] ?? match[3]!);
  }
  return levels;
}

/** Whether a step fits a level other than `**`. */
function fits(segment: Segment, level: string): boolean {
  const name = typeof segment === 'object' ? segment.key : String(segment);
  if (/^['"]/.test(level)) return formatPath([{ key: name }]) === formatPath([{ key: level.slice(1, -1) }]);
  const source = level.replaceAll(/[$*]/g, (sign) => (sign === '*' ? '.*' : '\\$'));
  return new RegExp(`^${source}$`, 's').test(name);
}

function matches(path: readonly Segment[], levels: readonly string[]): boolean {
  const [first, ...rest] = levels;
  if (first === undefined) return path.length === 0;
  if (first === '**') return path.some((_, i) => matches(path.slice(i), rest)) || matches([], rest);
  return path.length > 0 && fits(path[0]!, first) && matches(path.slice(1), rest);
}

/**
 * The paths in `root` of all fields that `pattern` means, each field once: `**` stands for any number of levels, `*` for one or
 * for a part of a name. Fields without a value count too.
 *
 * @throws ConfigError where it means none, with a similar name of a field or the paths of those of its last name.
 */
export function pathsLike(root: unknown, pattern: string): Segment[][] {
  const levels = levelsOf(pattern);
  // A config in two places may be named by either.
  const fields = placesIn(root, false);
  const seen = new Map<ConfigNode, Set<string>>();
  const found = fields.flatMap(({ node, field: { name }, link }) => {
    const path = segmentsOf(link);
    if (seen.get(node)?.has(name) || !matches(path, levels)) return [];
    seen.set(node, (seen.get(node) ?? new Set()).add(name));
    return [path];
  });
  if (found.length > 0) return found;
  throw new ConfigError(`no field of the configs matches.${hint(levels, fields)}`);
}

/** Most places of a field that a message lists. */
const mostPlaces = 4;

function hint(levels: readonly string[], fields: readonly Place[]): string {
  const last = levels.at(-1)!;
  const named = fields.filter(({ field: { name } }) => fits(name, last));
  if (named.length === 0 || last === '*' || last === '**')
    return didYouMean(last, new Set(fields.map(({ field: { name } }) => name)));
  const paths = named.slice(0, mostPlaces).map(({ link }) => formatPath(segmentsOf(link)));
  const more = named.length > mostPlaces ? ` and ${named.length - mostPlaces} more` : '';
  return ` Fields of that name are ${paths.join(', ')}${more}.`;
}
