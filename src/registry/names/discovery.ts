/** @file Discovery of experiments in source text: exported classes that extend Experiment. Runs none of their code. */
import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { explain } from '../../files/index.js';
import { extensions, statOf } from './directories.js';
import type { ClassEntry, FileEntry, OwnConstant, SourceProblem } from './fileEntry.js';
import { type Declaration, SourceFiles } from './sourceFiles.js';

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
  /** Local name of the class there. */
  readonly declared: string;
  /** Name of the base class, as written. */
  readonly base: string;
  /** Whether it is abstract: only its subclasses can run. */
  readonly abstract: boolean;
  /** Whether source text does not tell that it is one. */
  readonly isLoaded?: true;
  /** Constants that the class itself declares or sets, in source order. */
  readonly constants: readonly OwnConstant[];
}

/** An export that may be an experiment: only its value tells, as of `class A extends withDropout(Small, 0.1)`. */
export interface UnclassifiedExport
  extends Pick<FoundExperiment, 'name' | 'file' | 'exportName' | 'description' | 'place' | 'declared'> {
  /** Text of the extends clause, or of the value; '' where it is in another package. `exportName` may be `*`. */
  readonly text: string;
}

/** Result of a scan. */
export interface Scan {
  /** Sorted by name. */
  readonly experiments: readonly FoundExperiment[];
  /** Sorted by name. */
  readonly unclassified: readonly UnclassifiedExport[];
  /** Files with syntax errors, and unreadable paths. */
  readonly problems: readonly SourceProblem[];
}

/** Whether a class is an experiment, as far as source text tells. */
type Kind = 'experiment' | 'other' | 'unknown';

class Scanner {
  private readonly files = new SourceFiles();

  entry(path: string): FileEntry {
    return this.files.entry(path);
  }

  /** Whether a declaration is a class that extends Experiment, and the classes from it up to there. */
  private descent(declaration: Declaration): {
    readonly kind: Kind;
    readonly classes: readonly ClassEntry[];
  } {
    const classes: ClassEntry[] = [];
    const is = (kind: Kind) => ({ kind, classes });
    let at = declaration;
    for (;;) {
      const cls = this.entry(at.path).classes.get(at.name);
      if (cls === undefined) return is(classes.at(-1)?.calls.length ? 'unknown' : 'other');
      if (classes.includes(cls) || cls.text === '') return is('other');
      classes.push(cls);
      const isMade = cls.calls.includes('');
      const base = this.files.find(at.path, isMade ? cls.base.slice(0, 1) : cls.base);
      if (cls.base.length === 0 || base === 'unknown') return is('unknown');
      if (base === 'other') return is('other');
      if (base === undefined) return is(isMade ? 'unknown' : 'other');
      // A class can only extend a static method's result if that is a class.
      if (base === 'Experiment') return is(isMade && cls.isValue ? 'unknown' : 'experiment');
      if (isMade) {
        const { kind } = this.descent(base);
        const isClass = kind === 'experiment' && !cls.isValue;
        if (!isClass) return is(kind === 'other' && this.isClass(base) ? 'other' : 'unknown');
      }
      at = base;
    }
  }

  private isClass({ path, name }: Declaration): boolean {
    return this.entry(path).classes.has(name);
  }

  /** Whether a class is one that only its subclasses make runnable: so says its declaration, or the method that makes it. */
  private isAbstract(classes: readonly ClassEntry[]): boolean {
    const [cls, ...above] = classes as [ClassEntry, ...ClassEntry[]];
    if (!cls.isValue || cls.calls.includes('of')) return cls.abstract;
    if (!classes.some(({ hasTask, calls }) => hasTask || calls.includes('of'))) return true;
    return cls.calls[0] === 'with' && (above.length === 0 || this.isAbstract(above));
  }

  /** The experiments that a file exports, and the exports that may be some. */
  exportsOf(file: string, prefix: string): Pick<Scan, 'experiments' | 'unclassified'> {
    const experiments: FoundExperiment[] = [];
    const unclassified: UnclassifiedExport[] = [];
    for (const exportName of this.files.exportNames(file)) {
      const found = this.files.exported(file, exportName);
      if (found === undefined || found === 'Experiment' || found === 'other') continue;
      const name = `${prefix}.${exportName}`;
      if (found === 'unknown') {
        const line = this.entry(file).lines.get(exportName) ?? 1;
        const place = { file, line, lastLine: line };
        unclassified.push({ name, file, exportName, place, declared: exportName, description: '', text: '' });
        continue;
      }
      const { kind, classes } = this.descent(found);
      const cls = this.entry(found.path).classes.get(found.name);
      if (kind === 'other' || cls === undefined) continue;
      const { description, base, constants, line, lastLine, text } = cls;
      const place = { file: found.path, line, lastLine };
      const common = { name, file, exportName, description, place, declared: found.name };
      const abstract = this.isAbstract(classes);
      if (kind === 'experiment') experiments.push({ ...common, abstract, constants, base: base.join('.') });
      else if (!cls.abstract) unclassified.push({ ...common, text });
    }
    for (const line of this.files.openStars(file).slice(0, 1)) {
      const place = { file, line, lastLine: line };
      const name = `${prefix}.*`;
      unclassified.push({ name, file, exportName: '*', place, declared: '*', description: '', text: '' });
    }
    return { experiments, unclassified };
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
  const names = new Set<string>();
  const experiments: FoundExperiment[] = [];
  const unclassified: UnclassifiedExport[] = [];
  const problems: SourceProblem[] = [];
  const add = <E extends { readonly name: string }>(found: readonly E[], to: E[]): void => {
    for (const each of found) {
      if (names.has(each.name)) continue;
      names.add(each.name);
      to.push(each);
    }
  };
  for (const directory of directories) {
    for (const name of sourceNames(directory, problems).sort()) {
      const path = join(directory, name);
      const prefix = name.replace(/\.[cm]?[jt]s$/, '').replace(/[/\\]/g, '.');
      const found = scanner.exportsOf(path, prefix);
      add(found.experiments, experiments);
      add(found.unclassified, unclassified);
      const { problem } = scanner.entry(path);
      if (problem) problems.push(problem);
    }
  }
  const byName = (a: { readonly name: string }, b: { readonly name: string }) => (a.name < b.name ? -1 : 1);
  return { experiments: experiments.sort(byName), unclassified: unclassified.sort(byName), problems };
}

/** All runnable experiments under the directories, sorted by name. */
export function scanExperiments(directories: readonly string[]): FoundExperiment[] {
  return scan(directories).experiments.filter((found) => !found.abstract);
}
