/** @file Files of a corpus, by path, glob, or glob in an installed package, in one order everywhere. */

import { existsSync, readdirSync, realpathSync, type Stats, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { distance } from 'fastest-levenshtein';
import { globSync, isDynamicPattern } from 'tinyglobby';
import { readRegularFile } from '../../files/index.js';
import { FileError, InputError } from '../inputErrors.js';

/** A file of a corpus. */
export interface CorpusFile {
  /** Absolute path. */
  readonly path: string;
  /** The path in messages: relative to the searched directory, with `/`. */
  readonly name: string;
  /** Most bytes that it may have when it is unpacked; by default, the free space of the cache less a tenth. */
  readonly mostUnpackedBytes?: number;
}

const PACKAGE_PREFIX = 'pkg:';

const WHAT_IS_VALID =
  "A corpus is a file's path, a glob such as 'data/**/*.txt', or a glob in an installed package such as 'pkg:typescript/lib/lib.*.d.ts'.";

/**
 * Directory of an installed package, found as node finds it: from this module upwards, then from the working
 * directory. A package's `exports` do not hide its files here.
 */
export function packageDirectory(name: string): string {
  const bases = [import.meta.url, join(process.cwd(), 'package.json')];
  for (const base of bases) {
    for (const modules of createRequire(base).resolve.paths(name) ?? []) {
      if (existsSync(join(modules, name, 'package.json'))) return join(modules, name);
    }
  }
  throw new InputError(
    `No package '${name}' is installed (looked upwards from ${dirname(fileURLToPath(import.meta.url))} and from ${process.cwd()}).`,
  );
}

/** Splits 'pkg:@types/node/*.d.ts' into the directory of '@types/node' and the glob '*.d.ts'. */
function placeOf(spec: string): { directory: string; pattern: string } {
  if (!spec.startsWith(PACKAGE_PREFIX)) return { directory: process.cwd(), pattern: spec };
  const match = /^((?:@[^/]+\/)?[^/]+)\/(.+)$/.exec(spec.slice(PACKAGE_PREFIX.length));
  if (!match) throw new InputError(`'${spec}' names no file in a package. ${WHAT_IS_VALID}`);
  return { directory: packageDirectory(match[1]!), pattern: match[2]! };
}

const byCodeUnit = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

// 'data/**/*.txt' is the glob '**/*.txt' in 'data': it is cut before the first part with a wildcard.
function splitGlob(pattern: string): { base: string; glob: string } {
  const segments = pattern.split('/');
  const firstGlob = segments.findIndex((segment) => isDynamicPattern(segment));
  const base = segments.slice(0, firstGlob).join('/');
  return {
    base: base === '' && pattern.startsWith('/') ? '/' : base,
    glob: segments.slice(firstGlob).join('/'),
  };
}

/** File status at a path, if anything exists. @throws InputError with the system's reason if it is unreadable */
function lookAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new InputError(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

const isFile = (path: string): boolean => lookAt(path)?.isFile() ?? false;
const isDirectory = (path: string): boolean => lookAt(path)?.isDirectory() ?? false;

/** Removes duplicates found through links, which may form cycles: each file stays under its shortest name. */
function withoutLinksTwice(files: readonly CorpusFile[]): CorpusFile[] {
  const depth = (file: CorpusFile): number => file.path.split('/').length;
  const shortest = new Map<string, CorpusFile>();
  for (const file of files) {
    const real = realpathSync.native(file.path);
    const known = shortest.get(real);
    if (known === undefined || depth(file) < depth(known)) shortest.set(real, file);
  }
  const kept = new Set(shortest.values());
  return files.filter((file) => kept.has(file));
}

function matches(directory: string, pattern: string): CorpusFile[] {
  // An existing file takes precedence over a glob: 'notes (1).txt'.
  const path = resolve(directory, pattern);
  if (isFile(path)) return [{ path, name: pattern }];
  if (!isDynamicPattern(pattern)) return [];
  const { base, glob } = splitGlob(pattern);
  const cwd = resolve(directory, base);
  if (!isDirectory(cwd)) return [];
  const names = globSync(glob, { cwd, expandDirectories: false, onlyFiles: true });
  const files = names
    .sort(byCodeUnit)
    .map((name) => ({ path: join(cwd, name), name: posix.join(base, name) }));
  return withoutLinksTwice(files);
}

/** Suggests the existing name closest to the requested one, or names the first missing directory of its path. */
function suggestion(directory: string, pattern: string): string {
  if (isDirectory(resolve(directory, pattern))) {
    return ` It is a directory. Did you mean '${posix.join(pattern, '**')}'?`;
  }
  const isGlob = isDynamicPattern(pattern);
  if (!isGlob && lookAt(resolve(directory, pattern)) !== undefined)
    return ' It is a named pipe, a device or a socket.';
  const folder = isGlob ? splitGlob(pattern).base : posix.dirname(pattern);
  const absolute = resolve(directory, folder);
  if (!isDirectory(absolute)) return ` There is no directory ${absolute}.`;
  const wanted = posix.basename(pattern);
  const near = readdirSync(absolute, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => ({ name, far: distance(name, wanted) }))
    .filter(({ name, far }) => isGlob || far <= Math.max(name.length, wanted.length) / 2)
    .sort((a, b) => a.far - b.far || byCodeUnit(a.name, b.name))[0];
  return near ? ` Did you mean '${posix.join(folder, near.name)}'?` : '';
}

/**
 * Finds the files of `specs`, each once, in the order of the specs, and by name (code units) within a glob: the same
 * order on every machine.
 *
 * @throws InputError for a spec without a match: where it was searched, valid forms, the closest name
 */
export function resolveFiles(specs: readonly string[]): CorpusFile[] {
  const found = new Map<string, CorpusFile>();
  for (const spec of specs) {
    const { directory, pattern } = placeOf(spec);
    const files = matches(directory, pattern);
    if (files.length === 0) {
      throw new InputError(
        `No file matches '${spec}' (looked in ${directory}).${suggestion(directory, pattern)} ${WHAT_IS_VALID}`,
      );
    }
    for (const file of files) if (!found.has(file.path)) found.set(file.path, file);
  }
  return [...found.values()];
}

/** Most bytes of a file that is read whole. */
export const LONGEST = 2 ** 31 - 1;

/** A file of a corpus with its contents. */
export interface SourceFile extends CorpusFile {
  readonly bytes: Uint8Array;
}

/** Reads whole files. @throws InputError with the file and the system's reason */
export function readFiles(files: readonly CorpusFile[]): SourceFile[] {
  return files.map((file) => {
    try {
      const { buffer, byteOffset, byteLength } = readRegularFile(file.path, LONGEST);
      return { ...file, bytes: new Uint8Array(buffer, byteOffset, byteLength) };
    } catch (error) {
      throw new FileError(`${file.path} cannot be read: ${(error as Error).message}`, { cause: error });
    }
  });
}
