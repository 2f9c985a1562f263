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
  private readonly models = new Map<string, boolean>();

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
    return [...this.filesOf(name)].some((file) => this.isChanged(file));
  }

  /** Whether the change may alter the experiment's model though its configs stay: code that is no experiment's changed. */
  isModelTouched(name: string): boolean {
    return [...this.filesOf(name)].some((file) => this.isModelFile(file));
  }

  private isChanged(file: string): boolean {
    const name = this.nameOf(file);
    return name !== undefined && this.changed.has(name);
  }

  /** Whether the file declares classes besides experiments, and it or a file that it loads was changed. */
  private isModelFile(file: string): boolean {
    let known = this.models.get(file);
    if (known === undefined) {
      known =
        this.declaresOthers(file) && [...this.graph.closureOf(file)].some((each) => this.isChanged(each));
      this.models.set(file, known);
    }
    return known;
  }

  private declaresOthers(file: string): boolean {
    const experiments = this.classes.get(file);
    if (experiments === undefined) return true;
    return [...readSourceFile(file).classes.keys()].some((name) => !experiments.has(name));
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
