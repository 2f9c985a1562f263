/** @file Fields whose change keeps a run from going on, found by trying each change by itself. */
import {
  classOf,
  formatPath,
  fromJSON,
  getPath,
  isConfig,
  isEqual,
  type JsonDocument,
  type Segment,
  toJSON,
  withOrigin,
} from '../../hparams/index.js';
import type { Trainable } from '../../programs/index.js';
import { rootsOf } from './writtenConfigs.js';

/** The roots of an experiment's configs. */
export type Roots = Pick<Trainable, 'task' | 'datasets' | 'decodeDatasets'>;

/** Of more differing fields, none is tried. */
const MOST_TRIED = 24;

/** Configs as another version can build them. @throws ConfigError for values that have no form */
export const documentOf = (roots: Roots): string =>
  JSON.stringify(toJSON(rootsOf(roots), { modules: false }));

const readRoots = (document: string): Roots =>
  withOrigin('luthier diff', () => fromJSON(JSON.parse(document) as JsonDocument) as Roots);

/** Paths at which configs differ, as deep as their classes and the lengths of their lists are the same. */
function differingPaths(old: unknown, now: unknown): Segment[][] {
  const found: Segment[][] = [];
  const seen = new Set<unknown>();
  const visit = (a: unknown, b: unknown, path: readonly Segment[]): void => {
    if (Object.is(a, b) || seen.has(a)) return;
    if (typeof a === 'object' && a !== null) seen.add(a);
    if (areAlike(a, b))
      for (const [key, value] of Object.entries(a))
        visit(value, (b as Fields)[key], [...path, Array.isArray(a) ? Number(key) : key]);
    else if (!isEqual(a, b)) found.push([...path]);
  };
  visit(old, now, []);
  return found;
}

type Fields = Readonly<Record<string, unknown>>;

/** Whether two values have the same fields or items, so that these are compared. */
function areAlike(a: unknown, b: unknown): a is Fields {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (isConfig(a) || isConfig(b)) return isConfig(a) && isConfig(b) && classOf(a) === classOf(b);
  const isPlain = (value: object) =>
    Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  if (!isPlain(a) || !isPlain(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  return Object.keys(a).join('\0') === Object.keys(b).join('\0');
}

function setAt(roots: Roots, path: readonly Segment[], value: unknown): void {
  const owner = getPath(roots, path.slice(0, -1)) as Record<string | number, unknown>;
  withOrigin('luthier diff', () => {
    owner[path.at(-1) as string | number] = value;
  });
}

/**
 * Paths of the fields that keep a run from going on: those whose change alone is refused as all of them are, or else those
 * without whose change the others are taken.
 *
 * @param document of the configs before.
 * @param attempt goes on with configs, or throws.
 * @returns none where this version can't build the configs before, or too many fields differ.
 */
export async function forcingFields(
  document: string | undefined,
  now: Roots,
  attempt: (roots: Roots) => Promise<unknown>,
  refusal: unknown,
): Promise<string[]> {
  if (document === undefined) return [];
  try {
    const own = documentOf(now);
    const [old, present] = [readRoots(document), readRoots(own)];
    const paths = differingPaths(old, present);
    if (paths.length > MOST_TRIED) return [];
    const errorWith = async (of: string, path: readonly Segment[], values: Roots): Promise<unknown> => {
      const roots = readRoots(of);
      try {
        setAt(roots, path, getPath(values, path));
        await attempt(roots);
        return undefined;
      } catch (error) {
        return error;
      }
    };
    const kind = (error: unknown) => (error as Error | undefined)?.name;
    const alone: string[] = [];
    const without: string[] = [];
    for (const path of paths)
      if (kind(await errorWith(document, path, present)) === kind(refusal)) alone.push(formatPath(path));
    if (alone.length > 0) return alone;
    for (const path of paths)
      if ((await errorWith(own, path, old)) === undefined) without.push(formatPath(path));
    return without;
  } catch {
    return [];
  }
}
