/** @file Discovery of experiments in source text: exported classes that extend Experiment. Runs none of their code. */
import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { explain } from '../../files/index.js';
import { extensions, statOf } from './directories.js';
import type { ClassEntry, FileEntry, OwnConstant, SourceProblem } from './sourceFile.js';
import { type Declaration, SourceFiles } from './sourceFiles.js';

export type { OwnConstant, SourceProblem } from './sourceFile.js';

/** An exported experiment. */
export interface FoundExperiment {
  /** Canonical name: `lm.Small` for export Small of experiments/lm.ts. */
  readonly name: string;
  /** The file to load for it. */
  readonly file: string;
  readonly exportName: string;
  /** First paragraph of the class's doc comment, or ''. */
  readonly description: string;
  /** Where the class stands: another file than `file` where that hands it on. */
  readonly place: { readonly file: string; readonly line: number; readonly lastLine: number };
  /** Name of the base class, as written. */
  readonly base: string;
  /** Whether it is abstract: only its subclasses can run. */
  readonly abstract: boolean;
  /** Constants that the class itself declares or sets, in source order. */
  readonly constants: readonly OwnConstant[];
}

/** Result of a scan. */
export interface Scan {
  /** Sorted by name. */
  readonly experiments: readonly FoundExperiment[];
  /** Files with syntax errors, and unreadable paths. */
  readonly problems: readonly SourceProblem[];
}

class Scanner {
  private readonly files = new SourceFiles();

  entry(path: string): FileEntry {
    return this.files.entry(path);
  }

  /** Whether a declaration is a class that extends Experiment. */
  private descends(declaration: Declaration): boolean {
    const seen = new Set<ClassEntry>();
    let at = declaration;
    for (;;) {
      const cls = this.entry(at.path).classes.get(at.name);
      if (cls === undefined || seen.has(cls)) return false;
      seen.add(cls);
      const base = this.files.find(at.path, cls.base);
      if (base === 'Experiment') return true;
      if (base === undefined) return false;
      at = base;
    }
  }

  experimentsOf(file: string, prefix: string): FoundExperiment[] {
    const { exports, reexports } = this.entry(file);
    return [...exports.keys(), ...reexports.keys()].flatMap((exportName) => {
      const found = this.files.exported(file, exportName);
      if (!found || found === 'Experiment' || !this.descends(found)) return [];
      const cls = this.entry(found.path).classes.get(found.name)!;
      const { description, abstract, base, constants, line, lastLine } = cls;
      return [
        {
          ...{ name: `${prefix}.${exportName}`, file, exportName, description, abstract, constants },
          ...{ place: { file: found.path, line, lastLine }, base: base.join('.') },
        },
      ];
    });
  }
}

/** The entries that count: no hidden names, such as the links by which editors lock files; no declarations, tests and packages. */
const isWanted = (name: string): boolean => !/^\.|\.d\.[cm]?ts$|\.test\.|node_modules/.test(name);

/**
 * Names of the source files below a directory, relative to it, including non-folders with the name of one. Links are
 * followed, except to a folder above. A folder that the system refuses to list is a problem.
 */
function sourceNames(
  directory: string,
  problems: SourceProblem[],
  inside = '',
  above: readonly string[] = [],
): string[] {
  const folder = join(directory, inside);
  let real: string;
  let names: string[];
  try {
    real = realpathSync(folder);
    if (above.includes(real)) return [];
    names = readdirSync(folder).filter(isWanted).sort();
  } catch (error) {
    if (inside !== '' || (error as NodeJS.ErrnoException).code !== 'ENOENT')
      problems.push({ file: folder, message: `${explain(error)}.` });
    return [];
  }
  return names.flatMap((name) => {
    const path = join(inside, name);
    if (statOf(join(directory, path))?.isDirectory())
      return sourceNames(directory, problems, path, [...above, real]);
    return extensions.some((extension) => name.endsWith(extension)) ? [path] : [];
  });
}

/** All experiments under the directories, abstract ones included; of equal names, the earlier directory's wins. */
export function scan(directories: readonly string[]): Scan {
  const scanner = new Scanner();
  const byName = new Map<string, FoundExperiment>();
  const problems: SourceProblem[] = [];
  for (const directory of directories) {
    for (const name of sourceNames(directory, problems).sort()) {
      const path = join(directory, name);
      const prefix = name.replace(/\.[cm]?[jt]s$/, '').replace(/[/\\]/g, '.');
      for (const found of scanner.experimentsOf(path, prefix)) {
        if (!byName.has(found.name)) byName.set(found.name, found);
      }
      const { problem } = scanner.entry(path);
      if (problem) problems.push(problem);
    }
  }
  const experiments = [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  return { experiments, problems };
}

/** All runnable experiments under the directories, sorted by name. */
export function scanExperiments(directories: readonly string[]): FoundExperiment[] {
  return scan(directories).experiments.filter((found) => !found.abstract);
}
