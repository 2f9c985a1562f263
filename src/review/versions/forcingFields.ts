/** @file Fields whose change keeps a run from going on: the fewest whose former values bring it back. */
import {
  classOf,
  formatPath,
  getPath,
  isConfig,
  isEqual,
  type Segment,
  withOrigin,
} from '../../hparams/index.js';
import { type Configs, readConfigs, writeConfigs } from './writtenConfigs.js';

/** After so many attempts to go on, no field is named. */
const MOST_TRIED = 64;

type Fields = Readonly<Record<string, unknown>>;

/** Paths at which configs differ, as deep as their classes and the lengths of their lists are the same. */
function differingPaths(old: unknown, now: unknown): Segment[][] {
  const found: Segment[][] = [];
  const seen = new Set<unknown>();
  const visit = (a: unknown, b: unknown, path: readonly Segment[]): void => {
    if (Object.is(a, b) || seen.has(a)) return;
    if (typeof a === 'object' && a !== null) seen.add(a);
    if (areAlike(a, b))
      for (const key of new Set([...Object.keys(a), ...Object.keys(b as Fields)]))
        visit(a[key], (b as Fields)[key], [...path, Array.isArray(a) ? Number(key) : key]);
    else if (!isEqual(a, b)) found.push([...path]);
  };
  visit(old, now, []);
  return found;
}

/** Whether two values have the same fields or items, so that these are compared. */
function areAlike(a: unknown, b: unknown): a is Fields {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (isConfig(a) || isConfig(b)) return isConfig(a) && isConfig(b) && classOf(a) === classOf(b);
  const isPlain = (value: object) =>
    Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  if (!isPlain(a) || !isPlain(b) || Array.isArray(a) !== Array.isArray(b)) return false;
  return Object.keys(a).join('\0') === Object.keys(b).join('\0');
}

/** Gives the field at `path` the value that it has in `old`. */
function restore(configs: Configs, path: readonly Segment[], old: Configs): void {
  const owner = getPath(configs, path.slice(0, -1)) as Record<string | number, unknown>;
  const [key, value] = [path.at(-1) as string | number, getPath(old, path)];
  withOrigin('luthier diff', () => {
    if (value === undefined) delete owner[key];
    else owner[key] = value;
  });
}

/**
 * The fewest of `all` that make `suffices` true: none can be spared. QuickXplain (Junker, 2004), which asks about
 * k log(n / k) times for k of n.
 *
 * @param suffices of a set; of all, it is true.
 */
async function fewest<T>(
  all: readonly T[],
  suffices: (some: readonly T[]) => Promise<boolean>,
): Promise<T[]> {
  const search = async (given: readonly T[], isNew: boolean, open: readonly T[]): Promise<T[]> => {
    if (isNew && (await suffices(given))) return [];
    if (open.length <= 1) return [...open];
    const half = Math.ceil(open.length / 2);
    const [first, second] = [open.slice(0, half), open.slice(half)];
    const needed = await search([...given, ...first], true, second);
    return [...(await search([...given, ...needed], needed.length > 0, first)), ...needed];
  };
  return search([], false, all);
}

/**
 * Paths of the fields that keep a run from going on: a set whose former values make the job go on, and no smaller part of
 * which does.
 *
 * @param document of the configs before, as `writeConfigs` makes it.
 * @param attempt goes on with configs, or throws.
 * @returns none where the configs before are refused as well, so that a name or code is to blame; where this version can't
 *   build them; or where it takes too many attempts to tell.
 */
export async function forcingFields(
  document: string | undefined,
  now: Configs,
  attempt: (configs: Configs) => Promise<unknown>,
): Promise<string[]> {
  if (document === undefined) return [];
  try {
    const present = writeConfigs(now);
    const paths = differingPaths(readConfigs(document), readConfigs(present));
    let numTried = 0;
    const goesOn = async (restored: readonly Segment[][]): Promise<boolean> => {
      if (++numTried > MOST_TRIED) throw new Error('Too many attempts.');
      const [configs, old] = [readConfigs(present), readConfigs(document)];
      try {
        for (const path of restored) restore(configs, path, old);
        await attempt(configs);
        return true;
      } catch {
        return false;
      }
    };
    if (!(await goesOn(paths))) return [];
    return (await fewest(paths, goesOn)).map((path) => formatPath(path));
  } catch {
    return [];
  }
}
