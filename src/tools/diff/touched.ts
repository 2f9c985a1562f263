/** @file Which experiments a change of files can reach, and whether it reaches what their models are made of. */
import { join, relative } from 'node:path';
import { type FoundExperiment, scan } from '../../registry/scan.js';
import { readSourceFile } from '../../registry/sourceFile.js';
import { ImportGraph } from './imports.js';
import type { Tree } from './tree.js';

/** The experiments of a version, and what each is made from. */
export class Sources {
  /** By name. */
  readonly experiments = new Map<string, FoundExperiment>();
  readonly graph: ImportGraph;
  private readonly closures = new Map<string, ReadonlySet<string>>();
  /** Experiment classes, families included, by file. */
  private readonly classes = new Map<string, Set<string>>();
  private readonly others = new Map<string, boolean>();
  private loaders: ReadonlySet<string> | undefined;

  /** `twin` has the same text in all files but the `changed` ones, which are named from the root. */
  constructor(
    readonly tree: Tree,
    private readonly changed: ReadonlySet<string>,
    twin?: Sources,
  ) {
    this.graph = new ImportGraph(tree.root, twin && ((file) => this.importsOfTwin(file, twin)));
    const folders = new Set([tree.project, tree.library].map((folder) => join(folder, 'experiments')));
    for (const found of scan([...folders]).experiments) {
      const own = this.classes.get(found.place.file) ?? new Set();
      this.classes.set(found.place.file, own.add(found.exportName));
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

  /**
   * Whether the change may alter the experiment's model though its configs stay: it reaches a file that declares other
   * classes than experiments, or none.
   */
  isModelTouched(name: string): boolean {
    return [...this.filesOf(name)].some((file) => this.loadsChanged.has(file) && this.declaresOthers(file));
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

  private declaresOthers(file: string): boolean {
    const experiments = this.classes.get(file);
    if (experiments === undefined) return true;
    let known = this.others.get(file);
    if (known === undefined) {
      known = [...readSourceFile(file).classes.keys()].some((name) => !experiments.has(name));
      this.others.set(file, known);
    }
    return known;
  }

  /** A file's name from the root; undefined for one outside, as those of packages are. */
  private nameOf(file: string): string | undefined {
    const name = relative(this.tree.root, file);
    return name.startsWith('..') || name.split('/').includes('node_modules') ? undefined : name;
  }

  private importsOfTwin(file: string, twin: Sources): readonly string[] | undefined {
    const name = this.nameOf(file);
    if (name === undefined || this.changed.has(name)) return undefined;
    return twin.graph.specifiersOf(join(twin.tree.root, name));
  }
}
