/** @file What every room that writes files does alike: making directories, and writing a file whole or not at all. */
import { existsSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const isDirectory = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * Makes a directory and everything above it; one that is there is left alone. `mkdirSync` with `recursive` never
 * returns where the system answers ENOENT for an existing parent, as /proc does.
 *
 * @throws the system's error where one of them can't be made.
 */
export function makeDirectory(path: string): void {
  if (existsSync(path) && isDirectory(path)) return;
  if (!existsSync(dirname(path))) makeDirectory(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have made it in between.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !isDirectory(path)) throw error;
  }
}

/** Writes a file under a temporary name, onto the disk, and renames it: a reader never sees half of it. */
export function writeWhole(path: string, text: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, text, { flush: true });
  renameSync(temporary, path);
}
