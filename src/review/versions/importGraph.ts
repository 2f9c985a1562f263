/** @file Import graph of a tree by source text, and the places where the text does not tell what is loaded. */
import { readSourceFile, type Unfollowed } from '../../registry/names/index.js';
import type { GitEntries } from './gitEntries.js';
import { ModuleFiles } from './moduleFiles.js';
import { isCode } from './treeFiles.js';

/** What a file loads itself. */
interface Loaded {
  readonly files: readonly string[];
  readonly unfollowed: readonly Unfollowed[];
  readonly changesOthers: boolean;
}

const nothing: Loaded = { files: [], unfollowed: [], changesOthers: false };

/** The imports among the files below `root`. */
export class ImportGraph {
  private readonly loads = new Map<string, Loaded>();
  private readonly modules: ModuleFiles;

  /** `git` tells of a tree that is read and not run. */
  constructor(root: string, git?: GitEntries) {
    this.modules = new ModuleFiles(root, git);
  }

  /** All that loading `file` loads of the project, itself included; `isMeant` says which files to follow. */
  closureOf(file: string, isMeant: (file: string) => boolean = () => true): Set<string> {
    const seen = new Set([file]);
    for (const each of seen)
      for (const target of this.loadsOf(each).files) if (isMeant(target)) seen.add(target);
    return seen;
  }

  /** Those of `files` that load one of `targets`, directly or through others, or are one. */
  loadersOf(targets: Iterable<string>, files: Iterable<string>): Set<string> {
    const importers = new Map<string, string[]>();
    for (const file of files) {
      for (const target of this.loadsOf(file).files) {
        const known = importers.get(target);
        if (known === undefined) importers.set(target, [file]);
        else known.push(file);
      }
    }
    const seen = new Set(targets);
    for (const each of seen) for (const importer of importers.get(each) ?? []) seen.add(importer);
    return seen;
  }

  /** Places in a file that load what its text does not name. */
  unfollowedIn(file: string): readonly Unfollowed[] {
    return this.loadsOf(file).unfollowed;
  }

  /** Whether a file's code may change state of other modules. */
  changesOthers(file: string): boolean {
    return this.loadsOf(file).changesOthers;
  }

  /** The files of the project that `specifier` may mean in a file. */
  importedBy(file: string, specifier: string): readonly string[] {
    return this.modules.resolve(file, specifier).files;
  }

  private loadsOf(file: string): Loaded {
    let loaded = this.loads.get(file);
    if (loaded === undefined) this.loads.set(file, (loaded = this.read(file)));
    return loaded;
  }

  private read(file: string): Loaded {
    // Of packages, all files count at once.
    if (!isCode(file) || file.includes('/node_modules/')) return nothing;
    const { loads, changesOthers } = readSourceFile(file);
    const { specifiers, unfollowed } = loads;
    const found = [...specifiers].map(({ line, text }) => ({ line, ...this.modules.resolve(file, text) }));
    return {
      changesOthers,
      files: [...new Set(found.flatMap(({ files }) => files))],
      unfollowed: [
        ...unfollowed,
        ...found.flatMap(({ line, unfollowed: what }) => (what === undefined ? [] : [{ line, what }])),
      ],
    };
  }
}
