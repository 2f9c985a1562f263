/**
 * @file Order in which test files are asked about a mutant: by how likely they are to notice it, for each second that they
 * take. Likely are those of the same name, those of the same folder, and those that import the mutated file in few steps. A
 * path that a test names, such as that of a program which it starts, counts as an import.
 */
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { globSync } from 'tinyglobby';

/** Files by path from the root, each with those that it imports or names. */
type Imports = ReadonlyMap<string, readonly string[]>;

const named = /'((?:\.{1,2}\/|src\/|test\/|experiments\/)[\w./-]+\.(?:js|ts|cjs))'/g;

/** What each TypeScript file of the sources and tests imports. */
export function importsOf(root: string): Imports {
  const files = globSync(['src/**/*.ts', 'test/**/*.ts', 'experiments/**/*.ts'], { cwd: root }).sort();
  const known = new Set(files);
  const resolved = (from: string, path: string): string[] => {
    const places = path.startsWith('.') ? [join(dirname(from), path), path] : [path];
    return places
      .map((place) => place.replace(/\.js$/, '.ts'))
      .filter((place) => known.has(place))
      .slice(0, 1);
  };
  return new Map(
    files.map((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      return [file, [...new Set([...text.matchAll(named)].flatMap(([, path]) => resolved(file, path!)))]];
    }),
  );
}

/** Steps from each file that reaches `target` through imports. */
function distancesTo(target: string, imports: Imports): Map<string, number> {
  const importers = new Map<string, string[]>();
  for (const [file, imported] of imports)
    for (const of of imported) importers.set(of, [...(importers.get(of) ?? []), file]);
  const distances = new Map([[target, 0]]);
  for (const [file, distance] of distances)
    for (const importer of importers.get(file) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1);
  return distances;
}

/** Folders that two paths share, below `src` and `test`. */
function sharedFolders(source: string, test: string): number {
  const [a, b] = [source, test].map((path) => dirname(path).split('/').slice(1)) as [string[], string[]];
  const differing = a.findIndex((folder, index) => folder !== b[index]);
  return differing === -1 ? a.length : differing;
}

const stem = (path: string): string => basename(path).split('.')[0]!;

/** What any test file takes besides its tests, in seconds. */
const loading = 1.5;

/**
 * Test files of every day that are most likely to notice a change of a file, in the order in which to ask them.
 *
 * @param file path from the root, such as `src/learners/schedules/schedules.ts`.
 * @param most files.
 * @param seconds that test files take, where that is known.
 */
export function closestTests(
  file: string,
  imports: Imports,
  most: number,
  seconds: ReadonlyMap<string, number> = new Map(),
): string[] {
  const distances = distancesTo(file, imports);
  const likely = (test: string): number => {
    const shared = sharedFolders(file, test);
    const named = stem(test) === stem(file) && shared > 0 ? 30 : 1;
    return (named * (1 + shared)) / (1 + (distances.get(test) ?? 10));
  };
  const worth = (test: string): number => likely(test) / (loading + (seconds.get(test) ?? 1));
  const sorted = (tests: readonly string[], by: (test: string) => number): string[] =>
    tests
      .map((test) => ({ test, rank: by(test) }))
      .sort((a, b) => b.rank - a.rank)
      .map(({ test }) => test);
  const reaching = [...imports.keys()]
    .filter((path) => path.endsWith('.test.ts'))
    .filter((test) => distances.has(test) || sharedFolders(file, test) > 0);
  return sorted(sorted(reaching, likely).slice(0, most), worth);
}
