/** @file Source files of a project, and the declarations that names in them stand for, through imports and exports. */
import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve, sep } from 'node:path';
import { extensions, isFile } from './directories.js';
import type { FileEntry, Link } from './fileEntry.js';
import { readSourceFile } from './readSource.js';

/** A class, a record or a constant by the file that declares it. */
export interface Declaration {
  readonly path: string;
  readonly name: string;
}

/**
 * Meaning of a name: a declaration, or Experiment itself, wherever it comes from; `other`, neither an experiment nor
 * something that makes one; `unknown`, a package's or a missing file's. Undefined for a function of the project.
 */
export type Found = Declaration | 'Experiment' | 'other' | 'unknown' | undefined;

/** Base classes of experiments that Luthier exports, beside its other classes and functions, which make none. */
const bases: ReadonlySet<string> = new Set(['Experiment', 'ParameterizedExperiment']);
/** Packages none of whose exports is an experiment or makes one. */
const isInnocent = (specifier: string): boolean =>
  isBuiltin(specifier) || /^(luthier|zod)(\/|$)/.test(specifier);

/** Globals whose methods return their arguments. */
const reflecting: ReadonlySet<string> = new Set(['Object', 'Reflect', 'Function']);

/** The source file of a relative import: './lm.js' means lm.ts if that exists. */
export function fileOfImport(importer: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const target = resolve(dirname(importer), specifier);
  const stem = target.replace(/\.[cm]?js$/, '');
  return [target, ...extensions.map((e) => stem + e)].find(isFile);
}

/** Files by their paths, each parsed once. */
export class SourceFiles {
  readonly #entries = new Map<string, FileEntry>();
  readonly #libraries = new Map<string, boolean>();

  entry(path: string): FileEntry {
    let entry = this.#entries.get(path);
    if (!entry) this.#entries.set(path, (entry = readSourceFile(path)));
    return entry;
  }

  /** The declaration behind a name, or behind `namespace.name`, in a file. */
  find(path: string, [local, member]: readonly string[], seen = new Set<string>()): Found {
    if (local === undefined) return undefined;
    const { classes, records, imports, others } = this.entry(path);
    const cls = classes.get(local);
    if (local === 'Experiment' && cls?.text === '') return 'Experiment';
    if (cls !== undefined || records.has(local)) {
      if (member !== undefined) return 'unknown';
      const isAlias = cls?.isValue && cls.calls.length === 0 && cls.base.length > 0;
      if (!isAlias) return { path, name: local };
      const key = `alias ${path}\n${local}`;
      return seen.has(key) ? undefined : this.find(path, cls.base, seen.add(key));
    }
    const imported = imports.get(local);
    if (imported === undefined) {
      const isGlobal = !others.includes(local);
      return isGlobal && !reflecting.has(local) ? 'other' : undefined;
    }
    if (imported.name === '*')
      return member === undefined ? undefined : this.#follow(path, { ...imported, name: member }, seen);
    const found = this.#follow(path, imported, seen);
    return member === undefined || found === 'other' ? found : 'unknown';
  }

  /** The declaration that a file exports by a name. */
  exported(path: string, name: string, seen = new Set<string>()): Found {
    const key = `${path}\n${name}`;
    if (seen.has(key)) return undefined;
    seen.add(key);
    const file = this.entry(path);
    const local = file.exports.get(name);
    if (local !== undefined) return this.find(path, [local], seen);
    const link = file.reexports.get(name);
    if (link !== undefined) return this.#follow(path, link, seen);
    const found = file.stars.map(({ from }) =>
      from === undefined ? 'unknown' : this.#follow(path, { from, name }, seen),
    );
    return found.find((each) => typeof each === 'object' || each === 'Experiment') ?? found.find(Boolean);
  }

  /** All names that a file exports, but those of packages. */
  exportNames(path: string, seen = new Set<string>()): Set<string> {
    if (seen.has(path)) return new Set();
    seen.add(path);
    const { exports, reexports, stars } = this.entry(path);
    const files = stars.flatMap(({ from }) => (from === undefined ? [] : (fileOfImport(path, from) ?? [])));
    const inStars = files.flatMap((file) =>
      [...this.exportNames(file, seen)].filter((each) => each !== 'default'),
    );
    return new Set([...exports.keys(), ...reexports.keys(), ...inStars]);
  }

  /** Lines of statements by which a file, or one that it hands on, exports names that only loading it tells. */
  openStars(path: string, seen = new Set<string>()): number[] {
    if (seen.has(path)) return [];
    seen.add(path);
    return this.entry(path).stars.flatMap(({ from, line }) => {
      if (from === undefined) return [line];
      if (!from.startsWith('.')) return isInnocent(from) ? [] : [line];
      const target = fileOfImport(path, from);
      return target === undefined || this.openStars(target, seen).length > 0 ? [line] : [];
    });
  }

  #follow(path: string, { name, from }: Link, seen: Set<string>): Found {
    // Experiment comes from the package or a path into it, so its name is enough.
    if (bases.has(name)) return 'Experiment';
    if (!from.startsWith('.')) return isInnocent(from) ? 'other' : 'unknown';
    const target = fileOfImport(path, from);
    if (target === undefined) return 'unknown';
    if (name === '*') return undefined;
    return this.exported(target, name, seen) ?? (this.#isLibrary(target) ? 'other' : undefined);
  }

  /** Whether a file is one of Luthier's own sources, as in a clone of it. */
  #isLibrary(path: string): boolean {
    const folder = dirname(path);
    let is = this.#libraries.get(folder);
    if (is === undefined) {
      is = isInLibrary(folder);
      this.#libraries.set(folder, is);
    }
    return is;
  }
}

function isInLibrary(folder: string): boolean {
  for (let above = folder; dirname(above) !== above; above = dirname(above)) {
    const file = join(above, 'package.json');
    if (!existsSync(file)) continue;
    const isOwn = /"name"\s*:\s*"luthier"/.test(readFileSync(file, 'utf8'));
    return (
      isOwn &&
      [`${above}${sep}src`, `${above}${sep}dist`].some((each) => `${folder}${sep}`.startsWith(each + sep))
    );
  }
  return false;
}
