/**
 * @file Files that a specifier may mean. Node, tsx and the settings of a project choose one of them; here all count, for a
 * file too many does no harm.
 */
import { readdirSync } from 'node:fs';
import { builtinModules, createRequire } from 'node:module';
import { basename, dirname, extname, isAbsolute, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type ts from 'typescript';
import { readRegularFile } from '../../files/index.js';
import { isFile } from '../../registry/names/index.js';
import type { GitEntries } from './gitEntries.js';

const builtin = new Set(builtinModules);
const codeExtensions = ['.ts', '.tsx', '.mts', '.cts', '.js', '.jsx', '.mjs', '.cjs'] as const;
const loadable = [...codeExtensions, '.json', '.node', '.wasm'] as const;

/** Extensions of sources by those that imports give them. */
const sourcesOf: Readonly<Record<string, readonly string[]>> = {
  '.js': ['.ts', '.tsx', '.jsx'],
  '.jsx': ['.tsx', '.ts'],
  '.mjs': ['.mts'],
  '.cjs': ['.cts'],
};

/** Whether a file is code, which may load more. */
export const isCode = (file: string): boolean =>
  (codeExtensions as readonly string[]).includes(extname(file));

/** Meaning of a specifier. */
export interface Resolved {
  readonly files: readonly string[];
  /** Why it may mean more. */
  readonly unfollowed?: string;
}

const nothing: Resolved = { files: [] };

interface Manifest {
  readonly name?: unknown;
  readonly main?: unknown;
  readonly exports?: unknown;
  readonly imports?: unknown;
  readonly [dependencies: string]: unknown;
}

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
  private readonly listings = new Map<string, ReadonlyMap<string, 'folder' | 'other'>>();
  private readonly manifests = new Map<string, Manifest | undefined>();
  private readonly settings = new Map<string, Settings | undefined>();
  private readonly packages = new Map<string, Resolved>();
  private readonly workspace: ReadonlyMap<string, readonly string[]>;
  private readonly parser = createRequire(import.meta.url)('typescript') as typeof ts;

  /** `git` tells of a tree whose links are plain files, and whose packages are not installed. */
  constructor(
    private readonly root: string,
    private readonly git?: GitEntries,
  ) {
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
    const files = [...new Set(paths.flatMap((path) => this.at(path)))];
    if (files.length > 0 || this.git === undefined) return { files };
    const isOutside = paths.every((path) => !this.isInside(path));
    const where = isOutside ? 'is outside of the repository' : 'git does not have';
    return { files, unfollowed: `imports ${JSON.stringify(specifier)}, which ${where}` };
  }

  private isInside(path: string): boolean {
    return path.startsWith(`${this.root}/`);
  }

  /** Files that an import of a path may load. */
  private at(path: string): string[] {
    const real = this.real(path);
    if (real === undefined || real === this.root) return [];
    if (this.git?.submodules.has(relative(this.root, real))) return [real];
    const [folder, name] = [this.real(dirname(real)) ?? this.root, basename(real)];
    const entries = this.entriesOf(folder);
    const stem = name.slice(0, name.length - extname(name).length);
    const names = [
      name,
      ...(sourcesOf[extname(name)] ?? []).map((extension) => stem + extension),
      ...loadable.map((extension) => name + extension),
    ];
    const files = names
      .filter((each) => entries.get(each) === 'other')
      .map((each) => this.real(join(folder, each)))
      .filter((each) => each !== undefined);
    return entries.get(name) === 'folder' ? [...files, ...this.inFolder(real)] : files;
  }

  private inFolder(folder: string): string[] {
    const entries = this.entriesOf(folder);
    const indices = loadable
      .map((extension) => `index${extension}`)
      .filter((name) => entries.get(name) === 'other');
    const main = this.manifestIn(folder)?.main;
    const others = typeof main === 'string' ? this.atUnlessSelf(folder, join(folder, main)) : [];
    return [...indices.map((name) => join(folder, name)), ...others];
  }

  private atUnlessSelf(folder: string, path: string): string[] {
    return path.replace(/\/$/, '') === folder ? [] : this.at(path);
  }

  /** A path once the links that git has are followed; undefined for one outside, and for a circle. */
  private real(path: string, steps = 0): string | undefined {
    if (!this.isInside(path)) return path === this.root ? path : undefined;
    const { links, submodules } = this.git ?? {};
    if (links === undefined || submodules === undefined) return path;
    const parts = relative(this.root, path).split('/');
    for (let i = 1; i <= parts.length; i += 1) {
      const name = parts.slice(0, i).join('/');
      if (submodules.has(name)) return join(this.root, name);
      const target = links.get(name);
      if (target === undefined) continue;
      if (isAbsolute(target) || steps > 40) return undefined;
      return this.real(resolve(this.root, dirname(name), target, ...parts.slice(i)), steps + 1);
    }
    return path;
  }

  private entriesOf(folder: string): ReadonlyMap<string, 'folder' | 'other'> {
    let entries = this.listings.get(folder);
    if (entries === undefined) {
      entries = new Map();
      try {
        entries = new Map(
          readdirSync(folder, { withFileTypes: true }).map((entry) => {
            const isLinkToFolder = entry.isSymbolicLink() && !isFile(join(folder, entry.name));
            return [entry.name, entry.isDirectory() || isLinkToFolder ? 'folder' : 'other'];
          }),
        );
      } catch {
        // Absent, or no folder.
      }
      this.listings.set(folder, entries);
    }
    return entries;
  }

  private *foldersAbove(file: string): Generator<string> {
    for (let folder = dirname(file); folder === this.root || this.isInside(folder); folder = dirname(folder))
      yield folder;
  }

  private manifestIn(folder: string): Manifest | undefined {
    if (!this.manifests.has(folder)) {
      this.manifests.set(folder, this.jsonOf(join(folder, 'package.json')) as Manifest | undefined);
    }
    return this.manifests.get(folder);
  }

  /** An object from a text that may have comments, as settings of TypeScript have; undefined for anything else. */
  private jsonOf(file: string): object | undefined {
    if (!isFile(file)) return undefined;
    try {
      const text = readRegularFile(file, 4_000_000).toString();
      const value = this.parser.parseConfigFileTextToJson(file, text).config as unknown;
      return typeof value === 'object' && value !== null ? value : undefined;
    } catch {
      return undefined;
    }
  }

  /** Files by the `imports` of package.json. */
  private imported(importer: string, specifier: string): string[] {
    return [...this.foldersAbove(importer)].flatMap((folder) =>
      matches(this.manifestIn(folder)?.imports, specifier).flatMap((target) =>
        target.startsWith('.') ? this.at(join(folder, target)) : [...this.inPackage(importer, target).files],
      ),
    );
  }

  /** Files by the `paths` and `baseUrl` of each tsconfig.json above a file, and of those that these extend. */
  private byPaths(importer: string, specifier: string): string[] {
    const found: string[] = [];
    for (const folder of this.foldersAbove(importer)) {
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
          found.push(...this.at(resolve(start ?? dirname(file), target)));
        if (start !== undefined) found.push(...this.at(resolve(start, specifier)));
      }
    }
    return [...new Set(found)];
  }

  private settingsIn(file: string): Settings | undefined {
    if (!this.settings.has(file)) this.settings.set(file, this.jsonOf(file) as Settings | undefined);
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
    const isCommitted = [...this.foldersAbove(importer)].some((folder) =>
      this.entriesOf(join(folder, 'node_modules', dirname(name))).has(basename(name)),
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
    const { exports } = this.manifestIn(folder) ?? {};
    const map = isManifestMap(exports) ? exports : { '.': exports };
    const named = matches(map, subpath).filter((target) => target.startsWith('.'));
    const paths = [...named, ...(exports === undefined || named.length === 0 ? [subpath] : [])];
    return [
      ...new Set(
        paths.flatMap((path) => (path === '.' ? this.inFolder(folder) : this.at(join(folder, path)))),
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
      const manifest = this.manifestIn(folder) ?? {};
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
