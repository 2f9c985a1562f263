/**
 * @file Directories of experiments, and file names in messages. Has no other imports of ours, since `luthier list`
 * starts with it.
 */
import { existsSync, type Stats, statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Extensions of experiment files, in order of preference. */
export const extensions = ['.ts', '.mts', '.js', '.mjs'] as const;

/** ./experiments of the working directory, then those of the library, which only a clone of it has. */
export function experimentDirectories(): string[] {
  const own = fileURLToPath(new URL('../../../experiments', import.meta.url));
  return [...new Set([resolve('experiments'), ...(existsSync(own) ? [own] : [])])];
}

/**
 * Directories that a command searches: all for a named experiment; otherwise the project's own, or the package's if the
 * project has none.
 */
export function directoriesFor(named: boolean): string[] {
  const [own, ...others] = experimentDirectories();
  return !named && existsSync(own!) ? [own!] : [own!, ...others];
}

/** The entry at a path once links are followed; undefined where nothing does, or the system refuses to tell. */
export function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Whether a regular file stands at a path, or a link to one. */
export function isFile(path: string): boolean {
  return statOf(path)?.isFile() ?? false;
}

/** A file's name in messages: relative if it is below the working directory. */
export function showFile(file: string): string {
  const path = relative(process.cwd(), file);
  return path.startsWith('..') ? file : path;
}

/** `experiments/lm.ts:12`, or the file alone where a line is unknown. */
export function showPlace({
  file,
  line,
}: {
  readonly file: string;
  readonly line?: number | undefined;
}): string {
  return line === undefined ? showFile(file) : `${showFile(file)}:${line}`;
}
