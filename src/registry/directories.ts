/** @file Directories of experiments, and file names in messages. Imports nothing else of ours: `luthier list` starts with it. */
import { existsSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Extensions of files that may hold experiments, in the order in which they are tried. */
export const extensions = ['.ts', '.mts', '.js', '.mjs'] as const;

/** ./experiments of the working directory, then the package's own. */
export function experimentDirectories(): string[] {
  const own = fileURLToPath(new URL('../../experiments', import.meta.url));
  return [...new Set([resolve('experiments'), own])];
}

/**
 * Where those are that a command is about: by name there are all; a project that asks for everything means its own
 * experiments, and only where it has none those that come with the package.
 */
export function directoriesFor(named: boolean): string[] {
  const [own, ...others] = experimentDirectories();
  return !named && existsSync(own!) ? [own!] : [own!, ...others];
}

/** A file as messages name it: from the working directory where it is below it. */
export function showFile(file: string): string {
  const path = relative(process.cwd(), file);
  return path.startsWith('..') ? file : path;
}
