/** @file Import graph of the project, and the experiments that a change of files reaches. */

import { readFileSync, realpathSync } from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { extensions, type FoundExperiment, isFile, scan } from '../../registry/names/index.js';
import type { Tree } from './versionTree.js';

/**
 * Statements that load a module when they are run: `import` and `export … from`, but those of types, and `import()` of a
 * text. Comments and strings may look alike: then a file too many counts as imported, which does no harm.
 */
const loading =
  /(?:^|[;}])\s*(?:import|export)\s+(?!type\b(?!\s*(?:,|from\b)))(?:[^'"`;]*?\bfrom\s*)?(['"])([^'"\n]+)\1|\bimport\s*\(\s*(['"])([^'"\n]+)\3/gm;

/** Specifiers that a module's text imports. */
export function importsIn(text: string): string[] {
  return [...new Set([...text.matchAll(loading)].map((match) => (match[2] ?? match[4])!))];
}

const builtin = new Set(builtinModules);

/** The imports among the files below `root`. */
export class ImportGraph {
  private readonly targets = new Map<string, readonly string[]>();
  private readonly packages = new Map<string, string | undefined>();

  constructor(private readonly root: string) {}

  /** All that loading `file` loads of the project, itself included. */
  closureOf(file: string): Set<string> {
    const seen = new Set([file]);
    for (const each of seen) for (const target of this.targetsOf(each)) seen.add(target);
    return seen;
  }

  /** Those of `files` that load one of `targets`, directly or through others, or are one. */
  loadersOf(targets: Iterable<string>, files: Iterable<string>): Set<string> {
    const importers = new Map<string, string[]>();
    for (const file of files) {
      for (const target of this.targetsOf(file)) {
        const known = importers.get(target);
        if (known === undefined) importers.set(target, [file]);
        else known.push(file);
      }
    }
    const seen = new Set(targets);
    for (const each of seen) for (const importer of importers.get(each) ?? []) seen.add(importer);
    return seen;
  }

  /** The files that a file imports itself. */
  private targetsOf(file: string): readonly string[] {
    let targets = this.targets.get(file);
    if (targets === undefined) {
      const folder = dirname(file);
      targets = importsOf(file).flatMap((specifier) => {
        const isFile = specifier.startsWith('.');
        const target = isFile ? fileAt(resolve(folder, specifier)) : this.packageFile(specifier);
        return target === undefined ? [] : [target];
      });
      this.targets.set(file, targets);
    }
    return targets;
  }

  /** The file of a package in the project, as workspaces do, and a package that imports itself by name. */
  private packageFile(specifier: string): string | undefined {
    if (specifier.startsWith('node:') || builtin.has(specifier)) return undefined;
    if (!this.packages.has(specifier)) this.packages.set(specifier, this.resolvePackage(specifier));
    return this.packages.get(specifier);
  }

  private resolvePackage(specifier: string): string | undefined {
    try {
      const file = realpathSync(createRequire(join(this.root, 'package.json')).resolve(specifier));
      return file.startsWith(`${this.root}/`) && !file.includes('/node_modules/') ? file : undefined;
    } catch {
      return undefined;
    }
  }
}

/** Specifiers that a file imports. */
function importsOf(file: string): string[] {
  return (extensions as readonly string[]).includes(extname(file))
    ? importsIn(readFileSync(file, 'utf8'))
    : [];
}

/** The source file that an import of `path` loads: lm.ts for ./lm.js, if lm.ts is the file that exists. */
function fileAt(path: string): string | undefined {
  const stem = path.replace(/\.[cm]?js$/, '');
  return [path, ...extensions.map((extension) => stem + extension)].find(isFile);
}

/** The experiments of a version, and their sources. */
export class Sources {
  /** By name. */
  readonly experiments = new Map<string, FoundExperiment>();
  private readonly graph: ImportGraph;
  private readonly closures = new Map<string, ReadonlySet<string>>();
  private loaders: ReadonlySet<string> | undefined;

  /** `changed` files are named from the root. */
  constructor(
    readonly tree: Tree,
    private readonly changed: ReadonlySet<string>,
  ) {
    this.graph = new ImportGraph(tree.root);
    const folders = new Set([tree.project, tree.library].map((folder) => join(folder, 'experiments')));
    for (const found of scan([...folders]).experiments) {
      if (!found.abstract && this.nameOf(found.file) !== undefined) this.experiments.set(found.name, found);
    }
  }

  /** All files of the project that an experiment loads. */
  readonly filesOf = (name: string): ReadonlySet<string> => {
    const file = this.experiments.get(name)?.file;
    if (file === undefined) return new Set();
    let files = this.closures.get(file);
    if (files === undefined) this.closures.set(file, (files = this.graph.closureOf(file)));
    return files;
  };

  /** Whether the experiment loads a file that was changed. */
  isTouched(name: string): boolean {
    return this.loadsChanged.has(this.experiments.get(name)?.file ?? '');
  }

  /** The changed files that the experiment loads, from the project's folder. */
  changedFilesOf(name: string): string[] {
    return this.changedIn(this.filesOf(name));
  }

  /** Whether a file is a changed one, or loads one. */
  reaches(file: string): boolean {
    return this.loadsChanged.has(file);
  }

  private changedIn(files: Iterable<string>): string[] {
    const changed = [...files].filter((file) => this.changed.has(relative(this.tree.root, file)));
    return changed.map((file) => relative(this.tree.project, file)).sort();
  }

  /** The files that load a changed one. */
  private get loadsChanged(): ReadonlySet<string> {
    if (this.loaders === undefined) {
      const files = new Set([...this.experiments.keys()].flatMap((name) => [...this.filesOf(name)]));
      const changed = [...this.changed].map((name) => join(this.tree.root, name));
      this.loaders = this.graph.loadersOf(changed, files);
    }
    return this.loaders;
  }

  /** A file's name from the root; undefined for one outside, as those of packages are. */
  private nameOf(file: string): string | undefined {
    const name = relative(this.tree.root, file);
    return name.startsWith('..') || name.split('/').includes('node_modules') ? undefined : name;
  }
}
