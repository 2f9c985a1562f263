/** @file Import specifiers of generated experiments, and the modules behind them. */
import { createRequire } from 'node:module';
import { basename, dirname, extname, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Modules } from '../../hparams/index.js';
import { fileOfImport, readSourceFile } from '../../registry/names/index.js';

const library = fileURLToPath(new URL(`../../index${extname(import.meta.url)}`, import.meta.url));
const sources = dirname(library);

/** Whether modules in `directory` can import this library by its package name. */
function knowsPackage(directory: string): boolean {
  try {
    return createRequire(join(directory, 'importing.js')).resolve('luthier') === library;
  } catch {
    return false;
  }
}

/** Specifier of a file for imports in `directory`. */
function relativeSpecifier(directory: string, file: string): string {
  const path = relative(directory, file)
    .split(sep)
    .join('/')
    .replace(/\.([cm]?)ts$/, '.$1js');
  return path.startsWith('../') ? path : `./${path}`;
}

/**
 * Specifier of the library, or a room of it, for imports in `directory`: a path within its repository, elsewhere the
 * package's name.
 */
function librarySpecifier(directory: string, room?: string): string {
  const root = dirname(sources) + sep;
  const isInside = `${directory}${sep}`.startsWith(root);
  if (!isInside && knowsPackage(directory)) return room === undefined ? 'luthier' : `luthier/${room}`;
  return relativeSpecifier(directory, room === undefined ? library : join(sources, room, basename(library)));
}

/** A file and its transitive relative imports, nearest first; library modules only if imported directly. */
export function nearbyFiles(file: string): string[] {
  const files = new Set([file]);
  for (const importer of files) {
    if (importer.startsWith(sources + sep)) continue;
    const { imports, reexports, stars } = readSourceFile(importer);
    const links = [...imports.values(), ...reexports.values()].map(({ from }) => from);
    for (const specifier of [...links, ...stars.flatMap(({ from }) => from ?? [])]) {
      const target = fileOfImport(importer, specifier);
      if (target !== undefined && target !== library) files.add(target);
    }
  }
  return [...files];
}

/**
 * Modules that a generated file in `directory` can import for an experiment made of `files`: the library, its rooms,
 * then these files. All are loaded already.
 */
export async function modulesFor(files: readonly string[], directory: string): Promise<Modules> {
  const modules: Record<string, object> = { [librarySpecifier(directory)]: await import('../../index.js') };
  const { rooms } = await import('../../rooms.js');
  for (const [room, exports] of Object.entries(rooms)) modules[librarySpecifier(directory, room)] = exports;
  for (const each of files) {
    modules[relativeSpecifier(directory, each)] ??= (await import(pathToFileURL(each).href)) as object;
  }
  return modules;
}
