/** @file Experiments of a version by source text, and the changed files that they load. */
import { join, relative } from 'node:path';
import {
  type FoundExperiment,
  type Scan,
  scan,
  type UnclassifiedExport,
} from '../../registry/names/index.js';
import type { GitEntries } from './gitEntries.js';
import { ImportGraph } from './importGraph.js';
import type { Tree } from './versionTree.js';

/** The experiments of a version, and their sources. */
export class Sources {
  /** By name. */
  readonly experiments = new Map<string, FoundExperiment>();
  /** Exports that may be experiments. */
  readonly unclassified: readonly UnclassifiedExport[];
  /** Files and folders of experiments that cannot be read. */
  readonly problems: Scan['problems'];
  private readonly graph: ImportGraph;
  private readonly closures = new Map<string, ReadonlySet<string>>();
  private loaders: ReadonlySet<string> | undefined;

  /** `changed` files are named from the root. `git` tells of a tree that is read and not run. */
  constructor(
    readonly tree: Tree,
    private readonly changed: ReadonlySet<string>,
    git?: GitEntries,
  ) {
    this.graph = new ImportGraph(tree.root, git);
    const folders = new Set([tree.project, tree.library].map((folder) => join(folder, 'experiments')));
    const { experiments, unclassified, problems } = scan([...folders]);
    // Links are plain files here, whose texts are no source.
    const links = [...(git?.links.keys() ?? [])]
      .map((name) => join(tree.root, name))
      .filter((file) => [...folders].some((folder) => file === folder || file.startsWith(`${folder}/`)));
    this.problems = [
      ...links.map((file) => ({ file, message: 'It is a symbolic link, which is not followed here.' })),
      ...problems.filter(({ file }) => !links.includes(file)),
    ];
    const isInside = ({ file }: { readonly file: string }): boolean => this.nameOf(file) !== undefined;
    this.unclassified = unclassified.filter(isInside);
    this.add(experiments.filter((found) => !found.abstract && isInside(found)));
  }

  /** Adds experiments, such as those that loading finds. */
  add(experiments: readonly FoundExperiment[]): void {
    for (const found of experiments) this.experiments.set(found.name, found);
    this.loaders = undefined;
  }

  /** All files of the project that an experiment loads. */
  readonly filesOf = (name: string): ReadonlySet<string> => {
    const file = this.experiments.get(name)?.file;
    if (file === undefined) return new Set();
    let files = this.closures.get(file);
    if (files === undefined) this.closures.set(file, (files = this.graph.closureOf(file)));
    return files;
  };

  /**
   * Names of the experiment's files whose code may change state of other modules, the library's own aside. Those of one text
   * find the same in a process.
   */
  readonly stateOf = (name: string): string => {
    const isLibrary = (file: string): boolean => file.startsWith(join(this.tree.library, 'src/'));
    const files = [...this.filesOf(name)].filter(
      (file) => !isLibrary(file) && this.graph.changesOthers(file),
    );
    return files.sort().join('\n');
  };

  /** Places in the experiment's files that load what text does not name: `experiments/lm.ts:7` and the reason. */
  unfollowedOf(name: string): string[] {
    return [...this.filesOf(name)].flatMap((file) =>
      this.graph
        .unfollowedIn(file)
        .map(({ line, what }) => `${relative(this.tree.project, file)}:${line} ${what}`),
    );
  }

  /** The file of the project, if any, that `specifier` means in a file. */
  readonly importedBy = (file: string, specifier: string): readonly string[] =>
    this.graph.importedBy(file, specifier);

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
