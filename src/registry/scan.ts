/** @file Discovery of experiments in source text: exported classes that extend Experiment. Runs none of their code. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { extensions } from './directories.js';
import {
  type ClassEntry,
  type FileEntry,
  type Link,
  type OwnConstant,
  readSourceFile,
  type SourceProblem,
} from './sourceFile.js';

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
  /** Files with syntax errors. */
  readonly problems: readonly SourceProblem[];
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

/** The source file of a relative import: './lm.js' means lm.ts if that exists. */
export function fileOfImport(importer: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const target = resolve(dirname(importer), specifier);
  const stem = target.replace(/\.[cm]?js$/, '');
  return [target, ...extensions.map((e) => stem + e)].find(isFile);
}

interface Declared {
  readonly path: string;
  readonly cls: ClassEntry;
}

/** A class, or 'root' for Experiment itself. */
type Found = Declared | 'root' | undefined;

class Scanner {
  private readonly files = new Map<string, FileEntry>();

  entry(path: string): FileEntry {
    let entry = this.files.get(path);
    if (!entry) this.files.set(path, (entry = readSourceFile(path)));
    return entry;
  }

  /** The class behind the names of an extends clause, through imports. */
  private find(path: string, [local, member]: readonly string[]): Found {
    if (local === undefined) return undefined;
    const file = this.entry(path);
    const cls = file.classes.get(local);
    if (cls) return cls.name === 'Experiment' && cls.base.length === 0 ? 'root' : { path, cls };
    const imported = file.imports.get(local);
    if (imported?.name !== '*') return imported && this.follow(path, imported);
    return member === undefined ? undefined : this.follow(path, { ...imported, name: member });
  }

  private follow(path: string, link: Link): Found {
    // Experiment comes from the package or a path into it, so its name is enough.
    if (link.name === 'Experiment') return 'root';
    const target = fileOfImport(path, link.from);
    return target ? this.exported(target, link.name, new Set()) : undefined;
  }

  private exported(path: string, name: string, seen: Set<string>): Found {
    const key = `${path}\n${name}`;
    if (seen.has(key)) return undefined;
    seen.add(key);
    const file = this.entry(path);
    const local = file.exports.get(name);
    if (local !== undefined) return this.find(path, [local]);
    const link = file.reexports.get(name);
    const links = link ? [link] : file.stars.map((from) => ({ from, name }));
    for (const { from, name: there } of links) {
      const target = fileOfImport(path, from);
      const found = target && this.exported(target, there, seen);
      if (found) return found;
    }
    return undefined;
  }

  private descends({ path, cls }: Declared): boolean {
    const seen = new Set<ClassEntry>();
    let at: Declared = { path, cls };
    while (!seen.has(at.cls)) {
      seen.add(at.cls);
      const base = this.find(at.path, at.cls.base);
      if (base === 'root') return true;
      if (!base) return false;
      at = base;
    }
    return false;
  }

  experimentsOf(file: string, prefix: string): FoundExperiment[] {
    const { exports, reexports } = this.entry(file);
    return [...exports.keys(), ...reexports.keys()].flatMap((exportName) => {
      const found = this.exported(file, exportName, new Set());
      if (!found || found === 'root' || !this.descends(found)) return [];
      const { description, abstract, base, constants, line, lastLine } = found.cls;
      return [
        {
          ...{ name: `${prefix}.${exportName}`, file, exportName, description, abstract, constants },
          ...{ place: { file: found.path, line, lastLine }, base: base.join('.') },
        },
      ];
    });
  }
}

function sourceFiles(directory: string): string[] {
  if (!existsSync(directory)) return [];
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  return names
    .filter((n) => extensions.some((e) => n.endsWith(e)) && !/\.d\.[cm]?ts$|\.test\.|node_modules/.test(n))
    .sort();
}

/** All experiments under the directories, abstract ones included; of equal names, the earlier directory's wins. */
export function scan(directories: readonly string[]): Scan {
  const scanner = new Scanner();
  const byName = new Map<string, FoundExperiment>();
  const problems: SourceProblem[] = [];
  for (const directory of directories) {
    for (const name of sourceFiles(directory)) {
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
