/** @file Source files of a project, and the declarations that names in them stand for, through imports and exports. */
import { dirname, resolve } from 'node:path';
import { extensions, isFile } from './directories.js';
import { readSourceFile } from './readSource.js';
import type { FileEntry, Link } from './sourceFile.js';

/** A class or record by the file that declares it. */
export interface Declaration {
  readonly path: string;
  readonly name: string;
}

/** Meaning of a name: a declaration, or Experiment itself, wherever it comes from. */
export type Found = Declaration | 'Experiment' | undefined;

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

  entry(path: string): FileEntry {
    let entry = this.#entries.get(path);
    if (!entry) this.#entries.set(path, (entry = readSourceFile(path)));
    return entry;
  }

  /** The declaration behind a name, or behind `namespace.name`, in a file. */
  find(path: string, [local, member]: readonly string[]): Found {
    if (local === undefined) return undefined;
    const { classes, records, imports } = this.entry(path);
    if (local === 'Experiment' && classes.get(local)?.base.length === 0) return 'Experiment';
    if (classes.has(local) || records.has(local)) return { path, name: local };
    const imported = imports.get(local);
    if (imported?.name !== '*') return imported && this.#follow(path, imported);
    return member === undefined ? undefined : this.#follow(path, { ...imported, name: member });
  }

  /** The declaration that a file exports by a name. */
  exported(path: string, name: string, seen = new Set<string>()): Found {
    const key = `${path}\n${name}`;
    if (seen.has(key)) return undefined;
    seen.add(key);
    const file = this.entry(path);
    const local = file.exports.get(name);
    if (local !== undefined) return this.find(path, [local]);
    const link = file.reexports.get(name);
    const links = link ? [link] : file.stars.map((from) => ({ from, name }));
    for (const { from, name: there } of links) {
      const target = fileOfImport(path, from);
      const found = target && this.exported(target, there, seen);
      if (found) return found;
    }
    return undefined;
  }

  #follow(path: string, link: Link): Found {
    // Experiment comes from the package or a path into it, so its name is enough.
    if (link.name === 'Experiment') return 'Experiment';
    const target = fileOfImport(path, link.from);
    return target ? this.exported(target, link.name) : undefined;
  }
}
