/**
 * @file Files that a specifier may mean. Node, tsx and the settings of a project choose one of them; here all count, for a
 * file too many does no harm.
 */
import { builtinModules, createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { GitEntries } from './gitEntries.js';
import { TreeFiles } from './treeFiles.js';

const builtin = new Set(builtinModules);
/** Meaning of a specifier. */
export interface Resolved {
  readonly files: readonly string[];
  /** Why it may mean more. */
  readonly unfollowed?: string;
}

const nothing: Resolved = { files: [] };

interface Settings {
  readonly extends?: unknown;
  readonly compilerOptions?: { readonly baseUrl?: unknown; readonly paths?: unknown };
}

/** All texts within a value. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** Targets of a specifier by a map of patterns with at most one `*` each. */
function matches(map: unknown, specifier: string): string[] {
  if (typeof map !== 'object' || map === null) return [];
  return Object.entries(map).flatMap(([pattern, targets]) => {
    const [head, tail] = pattern.split('*') as [string, string | undefined];
    if (tail === undefined) return pattern === specifier ? textsIn(targets) : [];
    const fits = specifier.startsWith(head) && specifier.endsWith(tail);
    if (!fits || specifier.length < head.length + tail.length) return [];
    const inner = specifier.slice(head.length, specifier.length - tail.length);
    return textsIn(targets).map((target) => target.replaceAll('*', () => inner));
  });
}

const isManifestMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && Object.keys(value).some((key) => key.startsWith('.'));

/** The files of a tree, by specifiers. */
export class ModuleFiles {
  private readonly settings = new Map<string, Settings | undefined>();
  private readonly packages = new Map<string, Resolved>();
  private readonly workspace: ReadonlyMap<string, readonly string[]>;
  private readonly tree: TreeFiles;

  /** `git` tells of a tree whose links are plain files, and whose packages are not installed. */
  constructor(
    private readonly root: string,
    private readonly git?: GitEntries,
  ) {
    this.tree = new TreeFiles(root, git);
    this.workspace = this.workspaceFolders();
  }

  /** The files of the tree that `importer` may load by a specifier. */
  resolve(importer: string, specifier: string): Resolved {
    if (/^(?:\.{1,2}(?:[/\\]|$)|\/|file:)/.test(specifier)) return this.atUrl(importer, specifier);
    if (/^data:/.test(specifier)) return { files: [], unfollowed: 'imports the text of a data: URL' };
    const mapped = specifier.startsWith('#')
      ? this.imported(importer, specifier)
      : this.byPaths(importer, specifier);
    const others =
      mapped.length > 0 || specifier.startsWith('#') ? nothing : this.inPackage(importer, specifier);
    return { ...others, files: [...mapped, ...others.files] };
  }

  private atUrl(importer: string, specifier: string): Resolved {
    const paths = [resolve(dirname(importer), specifier.replace(/^file:\/\//, ''))];
    try {
      // As modules are found: with escapes, without a query.
      paths.push(fileURLToPath(new URL(specifier, pathToFileURL(importer))));
    } catch {
      // No URL.
    }
    const files = [...new Set(paths.flatMap((path) => this.tree.at(path)))];
    if (files.length > 0 || this.git === undefined) return { files };
    const isOutside = paths.every((path) => !this.tree.isInside(path));
    const where = isOutside ? 'is outside of the repository' : 'git does not have';
    return { files, unfollowed: `imports ${JSON.stringify(specifier)}, which ${where}` };
  }

  /** Files by the `imports` of package.json. */
  private imported(importer: string, specifier: string): string[] {
    return [...this.tree.foldersAbove(importer)].flatMap((folder) =>
      matches(this.tree.manifestIn(folder)?.imports, specifier).flatMap((target) =>
        target.startsWith('.')
          ? this.tree.at(join(folder, target))
          : [...this.inPackage(importer, target).files],
      ),
    );
  }

  /** Files by the `paths` and `baseUrl` of each tsconfig.json above a file, and of those that these extend. */
  private byPaths(importer: string, specifier: string): string[] {
    const found: string[] = [];
    for (const folder of this.tree.foldersAbove(importer)) {
      const pending = [join(folder, 'tsconfig.json')];
      for (let i = 0; i < pending.length && i < 20; i += 1) {
        const file = pending[i]!;
        const { compilerOptions: options, extends: bases } = this.settingsIn(file) ?? {};
        for (const base of textsIn(bases).filter((each) => each.startsWith('.'))) {
          const path = resolve(dirname(file), base);
          pending.push(path.endsWith('.json') ? path : `${path}.json`);
        }
        const start =
          typeof options?.baseUrl === 'string' ? resolve(dirname(file), options.baseUrl) : undefined;
        for (const target of matches(options?.paths, specifier))
          found.push(...this.tree.at(resolve(start ?? dirname(file), target)));
        if (start !== undefined) found.push(...this.tree.at(resolve(start, specifier)));
      }
    }
    return [...new Set(found)];
  }

  private settingsIn(file: string): Settings | undefined {
    if (!this.settings.has(file)) this.settings.set(file, this.tree.jsonOf(file) as Settings | undefined);
    return this.settings.get(file);
  }

  /** Files of a package that is in the tree: a workspace's, one that imports itself, one that git has in node_modules. */
  private inPackage(importer: string, specifier: string): Resolved {
    if (specifier.startsWith('node:') || builtin.has(specifier)) return nothing;
    const [, name = specifier, rest = ''] = /^((?:@[^/]+\/)?[^/]+)(\/.*)?$/.exec(specifier) ?? [];
    if (this.git === undefined) {
      let known = this.packages.get(specifier);
      if (known === undefined) this.packages.set(specifier, (known = this.installed(specifier)));
      return known;
    }
    const isCommitted = [...this.tree.foldersAbove(importer)].some((folder) =>
      this.tree.entriesOf(join(folder, 'node_modules', dirname(name))).has(basename(name)),
    );
    const packaged = isCommitted ? this.git.packaged.map((path) => join(this.root, path)) : [];
    const folders = this.workspace.get(name) ?? [];
    const files = folders.flatMap((folder) => this.inManifest(folder, `.${rest}`));
    return {
      files: [...packaged, ...files],
      ...(folders.length > 0 && files.length === 0
        ? { unfollowed: `imports ${JSON.stringify(specifier)}, whose file git does not have` }
        : {}),
    };
  }

  private inManifest(folder: string, subpath: string): string[] {
    const { exports } = this.tree.manifestIn(folder) ?? {};
    const map = isManifestMap(exports) ? exports : { '.': exports };
    const named = matches(map, subpath).filter((target) => target.startsWith('.'));
    const paths = [...named, ...(exports === undefined || named.length === 0 ? [subpath] : [])];
    return [
      ...new Set(
        paths.flatMap((path) =>
          path === '.' ? this.tree.inFolder(folder) : this.tree.at(join(folder, path)),
        ),
      ),
    ];
  }

  /** Folders of the tree's packages by the names under which they are imported. */
  private workspaceFolders(): Map<string, string[]> {
    const found = new Map<string, string[]>();
    const add = (name: string, folder: string) => {
      const known = found.get(name);
      if (known === undefined) found.set(name, [folder]);
      else if (!known.includes(folder)) known.push(folder);
    };
    for (const path of this.git?.manifests ?? []) {
      const folder = dirname(join(this.root, path));
      const manifest = this.tree.manifestIn(folder) ?? {};
      if (typeof manifest.name === 'string') add(manifest.name, folder);
      for (const [kind, listed] of Object.entries(manifest)) {
        if (!/dependencies$/i.test(kind) || typeof listed !== 'object' || listed === null) continue;
        for (const [name, version] of Object.entries(listed)) {
          const [, inside] = /^(?:file|link|portal):(.+)$/.exec(String(version)) ?? [];
          if (inside !== undefined) add(name, resolve(folder, inside));
        }
      }
    }
    return found;
  }

  /** A package's file, where it is the tree's own. */
  private installed(specifier: string): Resolved {
    try {
      const file = createRequire(join(this.root, 'package.json')).resolve(specifier);
      return file.startsWith(`${this.root}/`) && !file.includes('/node_modules/')
        ? { files: [file] }
        : nothing;
    } catch {
      return nothing;
    }
  }
}
