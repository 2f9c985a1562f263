/** @file Patterns of paths: `**.keepProb` means the field at any depth, `task.*.name` one level below `task`. */
import { didYouMean } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import type { FieldInfo } from '../fields/fields.js';
import { isCarrier } from '../nodes/carriers.js';
import type { ConfigNode } from '../nodes/node.js';
import { allEdges } from '../walking/iterate.js';
import { formatPath, type PathLink, type Segment, segmentsOf } from '../walking/paths.js';
import { walk } from '../walking/walk.js';
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

/** Positions in the levels of a pattern that a path may have come to, rising; the last position is its end. */
type Positions = readonly number[];

/** Adds a position, and those behind it that a `**` reaches by standing for no level. */
function addPosition(levels: readonly string[], position: number, into: Set<number>): void {
  for (let at = position; !into.has(at); at++) {
    into.add(at);
    if (levels[at] !== '**') return;
  }
}

function start(levels: readonly string[]): Positions {
  const positions = new Set<number>();
  addPosition(levels, 0, positions);
  return [...positions];
}

function advance(levels: readonly string[], positions: Positions, segment: Segment): Positions {
  const next = new Set<number>();
  for (const at of positions) {
    const level = levels[at];
    if (level === '**') addPosition(levels, at, next);
    else if (level !== undefined && fits(segment, level)) addPosition(levels, at + 1, next);
  }
  return [...next].sort((a, b) => a - b);
}

/**
 * The fields of configs in `root` whose paths match, each with the first path that does. A config is visited by a path only
 * for positions in the pattern that no earlier path has come to it with: the same fields would follow from the others.
 */
function matchingPlaces(root: unknown, levels: readonly string[]): Place[] {
  const places: Place[] = [];
  const seen = new Map<ConfigNode, Set<FieldInfo>>();
  const visited = new Map<ConfigNode, Set<number>>();
  const positions = new Map<PathLink | undefined, Positions>([[undefined, start(levels)]]);
  const at = (link: PathLink | undefined): Positions => {
    // Links above those of configs are those of containers.
    const chain: PathLink[] = [];
    let known = link;
    for (; known !== undefined && !positions.has(known); known = known.parent) chain.push(known);
    return chain.reduceRight((found, { segment }) => advance(levels, found, segment), positions.get(known)!);
  };
  walk(root, {
    memoized: false,
    children: (node, link) => (positions.get(link)!.length === 0 ? [] : allEdges(node, link)),
    enter(node, link) {
      const known = visited.get(node) ?? new Set();
      const fresh = at(link).filter((position) => !known.has(position));
      positions.set(link, fresh);
      visited.set(node, new Set([...known, ...fresh]));
      const found = seen.get(node) ?? new Set();
      seen.set(node, found);
      for (const field of node.info.fields.values()) {
        const end = isCarrier(node) ? fresh : advance(levels, fresh, field.name);
        if (found.has(field) || !end.includes(levels.length)) continue;
        found.add(field);
        places.push({ node, field, link: isCarrier(node) ? link : { parent: link, segment: field.name } });
      }
    },
    leave: (_, link) => void (link && positions.delete(link)),
  });
  return places;
}

/**
 * The paths in `root` of all fields that `pattern` means, each field once: `**` stands for any number of levels, `*` for one or
 * for a part of a name. Fields without a value count too. A config in several places may be named by any of its paths.
 *
 * @throws ConfigError where it means none, with a similar name of a field or the paths of those of its last name.
 */
export function pathsLike(root: unknown, pattern: string): Segment[][] {
  const levels = levelsOf(pattern);
  const found = matchingPlaces(root, levels);
  if (found.length > 0) return found.map(({ link }) => segmentsOf(link));
  throw new ConfigError(`no field of the configs matches.${hint(levels, placesIn(root))}`);
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
