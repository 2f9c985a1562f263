/** @file Selection of experiments by name, dotted suffix or pattern. */
import { dirname, relative, sep } from 'node:path';
import { UsageError } from '../../system/text/index.js';
import { showFile, showPlace } from './directories.js';
import type { FoundExperiment, Scan } from './discovery.js';
import type { SourceProblem } from './fileEntry.js';
import { fullNameOf, suggestExperiment } from './suggest.js';

/** Whether a text is a pattern, with * or ?. */
export function isPattern(text: string): boolean {
  return /[*?]/.test(text);
}

/** Matcher of a pattern with * or ?: the whole name, or everything behind one of its dots. */
function glob(pattern: string): RegExp {
  const source = pattern
    .replace(/[\\^$.+()[\]{}|]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^(?:.*\\.)?${source}$`, 'i');
}

/** Experiments whose names contain `pattern` or, if it has * or ?, match it. */
export function matching<T extends { readonly name: string }>(
  pattern: string,
  experiments: readonly T[],
): T[] {
  if (isPattern(pattern)) {
    const expression = glob(pattern);
    return experiments.filter(({ name }) => expression.test(name));
  }
  const part = pattern.toLowerCase();
  return experiments.filter(({ name }) => name.toLowerCase().includes(part));
}

/** A file with a syntax error, or that cannot be read, in which no experiment was found. */
export interface BrokenFile {
  readonly name: string;
  readonly problem: SourceProblem;
}

/** Experiments and broken files to check. */
export interface Selection {
  readonly experiments: readonly FoundExperiment[];
  readonly broken: readonly BrokenFile[];
}

/** Prefix of the names of a file's experiments. */
function moduleName(file: string, directories: readonly string[]): string {
  const directory = directories.find((each) => file.startsWith(each + sep)) ?? dirname(file);
  return relative(directory, file)
    .replace(/\.[cm]?[jt]s$/, '')
    .replaceAll(sep, '.');
}

/**
 * Selects experiments by full name, unique dotted suffix, or pattern with * and ?. Without names, selects all, and the
 * broken files without any experiment.
 *
 * @throws UsageError for an unknown or ambiguous name.
 */
export function select(names: readonly string[], scan: Scan, directories: readonly string[]): Selection {
  const experiments = scan.experiments.filter(({ abstract }) => !abstract);
  if (names.length > 0) {
    const named = names.flatMap((name) => find(name, experiments, scan, directories));
    const byName = new Map(named.map((found) => [found.name, found]));
    return { experiments: [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), broken: [] };
  }
  const files = new Set(scan.experiments.flatMap(({ file, place }) => [file, place.file]));
  const broken = scan.problems
    .filter(({ file }) => !files.has(file))
    .map((problem) => ({ name: moduleName(problem.file, directories), problem }));
  return { experiments, broken };
}

/** Whether all names are those of experiments that source text tells. */
export function areTold(names: readonly string[], { experiments }: Scan): boolean {
  const all = experiments.filter(({ abstract }) => !abstract).map(({ name }) => name);
  return names.length > 0 && names.every((name) => !isPattern(name) && fullNameOf(name, all) !== undefined);
}

function find(
  name: string,
  experiments: readonly FoundExperiment[],
  { problems }: Scan,
  directories: readonly string[],
): readonly FoundExperiment[] {
  const all = experiments.map((each) => each.name);
  const fullName = isPattern(name) ? undefined : fullNameOf(name, all);
  const found = isPattern(name)
    ? matching(name, experiments)
    : experiments
        .filter((each) => each.name === fullName?.split('/')[0])
        .map((each) => ({ ...each, name: fullName! }));
  if (found.length > 0) return found;
  const searched = directories.map(showFile).join(' and ');
  const unread = problems.map((each) => `\n${showPlace(each)} cannot be read: ${each.message}`);
  throw new UsageError(
    `Could not find experiment '${name}' (searched ${searched}).${suggestExperiment(name, all)} ` +
      `luthier list shows all.${unread.join('')}`,
  );
}
