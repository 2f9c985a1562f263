/** @file What every room that writes files does alike: making directories, and writing a file whole or not at all. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
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

/**
 * Writes a file under a temporary name, onto the disk, and renames it: a reader never sees half of it.
 *
 * @throws the system's error where it cannot be written; then nothing is left.
 */
export function writeWhole(path: string, text: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(temporary, text, { flush: true });
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** A file that is there, and what it is to be. */
export interface Rewrite {
  readonly path: string;
  /** What it was when the new text was worked out. */
  readonly before: string;
  readonly text: string;
}

/**
 * Writes several files, all or none. Each keeps its permissions.
 *
 * @throws where one cannot be written, or is no longer as it was; then all are as they were.
 */
export function writeTogether(rewrites: readonly Rewrite[]): void {
  const done: Rewrite[] = [];
  const temporary = (path: string) => `${path}.${process.pid}.tmp`;
  try {
    for (const { path, text } of rewrites) {
      writeFileSync(temporary(path), text, { flush: true });
      chmodSync(temporary(path), statSync(path).mode);
    }
    for (const rewrite of rewrites) {
      if (readFileSync(rewrite.path, 'utf8') !== rewrite.before)
        throw new Error(`${rewrite.path} was changed meanwhile`);
    }
    for (const rewrite of rewrites) {
      renameSync(temporary(rewrite.path), rewrite.path);
      done.push(rewrite);
    }
  } catch (error) {
    for (const { path } of rewrites) rmSync(temporary(path), { force: true });
    for (const { path, before } of done) writeFileSync(path, before);
    throw error;
  }
}
