/** @file Reach of a change: the changed files that a process read, or looked for. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { contentsAt, digestOf } from '../../system/index.js';
import type { Repository } from './gitQueries.js';
import { isCode } from './treeFiles.js';
import type { Tree } from './versionTree.js';

/** Modules that an evaluating process loads before it records reads. */
const evaluatorEntry = ['evaluateWorker', 'memoryLimit', 'protocol']
  .map((name) => `src/review/versions/${name}.ts`)
  .concat('src/system/reads.ts', 'src/system/typescript.cjs', 'src/system/typescript.js');

/** Node and tsx resolve imports and translate TypeScript by these files and their bases, without recorded reads. */
const settings = /^(package|tsconfig)\.json$/;

/** Adds a tsconfig.json, and the project's own files that it extends. */
function addExtended(file: string, found: Set<string>): void {
  if (found.has(file) || !existsSync(file)) return;
  found.add(file);
  const given = /"extends"\s*:\s*("[^"]*"|\[[^\]]*\])/.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
  for (const [, path] of given.matchAll(/"(\.[^"]*)"/g))
    addExtended(resolve(dirname(file), path!.endsWith('.json') ? path! : `${path}.json`), found);
}

/** Settings that a project's TypeScript is translated by. */
function translationSettings({ root, project }: Tree): Set<string> {
  const found = new Set<string>();
  for (let folder = project; ; folder = dirname(folder)) {
    addExtended(join(folder, 'tsconfig.json'), found);
    if (folder === root || folder === dirname(folder)) return found;
  }
}

/** Digest of the files of a tree that its processes read without recording; `git` runs git in the repository. */
export function unrecordedContents(tree: Tree, git: Repository['git']): string {
  const { root, library } = tree;
  const patterns = ['package.json', 'tsconfig.json'].flatMap((name) => [name, `*/${name}`]);
  const listed = git(
    '-C',
    root,
    'ls-files',
    '-z',
    '--cached',
    '--others',
    '--exclude-standard',
    '--',
    ...patterns,
  );
  const files = listed.split('\0').filter((name) => name !== '');
  const others = ['package.json', 'tsconfig.json', ...evaluatorEntry].map((name) => join(library, name));
  const all = [...files.map((name) => join(root, name)), ...translationSettings(tree), ...others];
  const nameOf = (file: string): string => (file.startsWith(`${root}/`) ? file.slice(root.length) : file);
  const contents = [...new Set(all)].sort().map((file) => [nameOf(file), contentsAt(file)!]);
  return digestOf(...contents.flat());
}

/** All paths by which a process may come upon a file. */
function pathsOf(file: string): string[] {
  // An import leaves out the extension, or has another one, and may name the folder.
  const stem = file.slice(0, file.length - extname(file).length);
  return [file, stem, ...(basename(stem) === 'index' ? [dirname(file)] : [])];
}

/** The files in which two versions differ, as processes of one of them come upon them. */
export class ChangedFiles {
  private readonly byPath = new Map<string, string[]>();
  private readonly settings: readonly string[];
  private readonly root: string;
  private readonly roots: readonly string[];
  /** Submodules that cannot be compared, with the slash behind. */
  private readonly folders: readonly string[];

  /** `files` are named from the roots of both. The processes are of `tree`. */
  constructor(
    private readonly files: ReadonlySet<string>,
    tree: Tree,
    other: Tree,
  ) {
    const root = (this.root = tree.root);
    this.roots = [tree.root, other.root];
    this.folders = [...files]
      .filter((file) =>
        this.roots.some((each) => statSync(join(each, file), { throwIfNoEntry: false })?.isDirectory()),
      )
      .map((file) => `${file}/`);
    const translating = [tree, other].map((each) => ({ each, found: translationSettings(each) }));
    this.settings = [...files].filter(
      (file) =>
        settings.test(basename(file)) ||
        translating.some(({ each, found }) => found.has(join(each.root, file))),
    );
    for (const file of files) {
      for (const path of pathsOf(file)) this.add(path, file);
      // A folder that only one version has.
      for (let folder = dirname(file); folder !== '.'; folder = dirname(folder))
        if (existsSync(join(root, folder)) !== existsSync(join(other.root, folder))) this.add(folder, file);
    }
  }

  get size(): number {
    return this.files.size;
  }

  private add(path: string, file: string): void {
    const known = this.byPath.get(join(this.root, path));
    if (known === undefined) this.byPath.set(join(this.root, path), [file]);
    else known.push(file);
  }

  /** The changed files among the reads of a process, as by `recordReads`. */
  readBy(paths: Iterable<string>): Set<string> {
    const found = new Set(this.settings);
    for (const path of paths) {
      for (const file of this.byPath.get(path) ?? []) found.add(file);
      for (const folder of this.folders)
        if (path.startsWith(join(this.root, folder))) found.add(folder.slice(0, -1));
      if (!path.endsWith('/')) continue;
      for (const file of this.files) if (join(this.root, file).startsWith(path)) found.add(file);
    }
    return found;
  }

  /**
   * The changed files of data among the reads of a process: all but code, by which processes are told apart, and settings.
   * A path may be of either tree: an absolute one in a text leads to the same place from both.
   */
  dataReadBy(paths: Iterable<string>): Set<string> {
    const found = new Set<string>();
    const isData = (file: string): boolean => !isCode(file) && !this.settings.includes(file);
    for (const path of paths) {
      const root = this.roots.find((each) => path.startsWith(`${each}/`));
      if (root === undefined) continue;
      const name = path.slice(root.length + 1);
      if (this.files.has(name) && isData(name)) found.add(name);
      if (!name.endsWith('/')) continue;
      // A list of names is another one where a file came or went.
      for (const file of this.files)
        if (file.startsWith(name) && isData(file) && this.isInOne(file)) found.add(file);
    }
    return found;
  }

  /** The changed files of data that a started process may have read. */
  get unseenData(): string[] {
    const isHidden = (file: string): boolean => /(^|\/)\.|\.md$/.test(file);
    return [...this.files].filter(
      (file) =>
        !isCode(file) && !this.settings.includes(file) && !settings.test(basename(file)) && !isHidden(file),
    );
  }

  private isInOne(file: string): boolean {
    const [here, there] = this.roots.map((root) => existsSync(join(root, file)));
    return here !== there;
  }
}
