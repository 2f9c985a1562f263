/** @file Files of a tree at paths: with other extensions, behind links, in folders; manifests and settings. */
import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, extname, isAbsolute, join, relative, resolve } from 'node:path';
import type ts from 'typescript';
import { readRegularFile } from '../../files/index.js';
import { isFile } from '../../registry/names/index.js';
import type { GitEntries } from './gitEntries.js';

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

interface Manifest {
  readonly name?: unknown;
  readonly main?: unknown;
  readonly exports?: unknown;
  readonly imports?: unknown;
  readonly [dependencies: string]: unknown;
}

/** The files of a tree, by paths. */
export class TreeFiles {
  private readonly listings = new Map<string, ReadonlyMap<string, 'folder' | 'other'>>();
  private readonly manifests = new Map<string, Manifest | undefined>();
  private readonly parser = createRequire(import.meta.url)('typescript') as typeof ts;

  /** `git` tells of a tree whose links are plain files. */
  constructor(
    private readonly root: string,
    private readonly git?: GitEntries,
  ) {}

  /** Whether a path is in the tree. */
  isInside(path: string): boolean {
    return path.startsWith(`${this.root}/`);
  }

  /** Files that an import of a path may load. */
  at(path: string): string[] {
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

  /** Files that an import of a folder may load. */
  inFolder(folder: string): string[] {
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

  /** Names in a folder; none of one that is absent. */
  entriesOf(folder: string): ReadonlyMap<string, 'folder' | 'other'> {
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

  /** The folders of the tree that a file is in, the nearest first. */
  *foldersAbove(file: string): Generator<string> {
    for (let folder = dirname(file); folder === this.root || this.isInside(folder); folder = dirname(folder))
      yield folder;
  }

  /** The package.json of a folder. */
  manifestIn(folder: string): Manifest | undefined {
    if (!this.manifests.has(folder)) {
      this.manifests.set(folder, this.jsonOf(join(folder, 'package.json')) as Manifest | undefined);
    }
    return this.manifests.get(folder);
  }

  /** An object from a text that may have comments, as settings of TypeScript have; undefined for anything else. */
  jsonOf(file: string): object | undefined {
    if (!isFile(file)) return undefined;
    try {
      const text = readRegularFile(file, 4_000_000).toString();
      const value = this.parser.parseConfigFileTextToJson(file, text).config as unknown;
      return typeof value === 'object' && value !== null ? value : undefined;
    } catch {
      return undefined;
    }
  }
}
