/** @file Writing files whole or not at all, onto the disk, with the directories above them. */
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { UnfitFileError } from './errors.js';
import type { LineRange } from './lines.js';
import { openRegularFile, readFully } from './read.js';
import { temporaryName } from './temporaries.js';

const isDirectory = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * Makes a directory and everything above it; one that is there is left alone. `mkdirSync` with `recursive` never
 * returns where the system answers ENOENT for an existing parent, as /proc does.
 *
 * @throws UnfitFileError where something else stands in the place of one of them; the system's error where it can't be made.
 */
export function makeDirectory(path: string): void {
  if (existsSync(path) && isDirectory(path)) return;
  if (!existsSync(dirname(path))) makeDirectory(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process may have made it in between.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (isDirectory(path)) return;
    throw new UnfitFileError(`${path} is not a directory${linkText(path)}`, { cause: error });
  }
  syncDirectory(dirname(path));
}

/** Where a link leads: an unmounted disk is known by its name. */
function linkText(path: string): string {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink ? ` but a link to ${readlinkSync(path)}, which is none or not there` : '';
}

/** What file systems answer that can't sync a directory, and systems where it may not be opened. */
const CANNOT_SYNC = new Set(['EACCES', 'EBADF', 'EINVAL', 'EISDIR', 'ENOTSUP', 'EPERM']);

/** Makes what was created, renamed and removed in a directory last through a power cut, where the system can. */
export function syncDirectory(path: string): void {
  let directory: number | undefined;
  try {
    directory = openSync(path, 'r');
    fsyncSync(directory);
  } catch (error) {
    if (!CANNOT_SYNC.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    if (directory !== undefined) closeSync(directory);
  }
}

/** Removes what is left of something that failed. It may fail as well: the first error is the one to tell. */
export function removeQuietly(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Temporaries of processes that have ended are removed later.
  }
}

/** Behind links, the file that is there to be replaced. */
function targetOf(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ? realpathSync(path) : path;
}

/**
 * Writes a file under a temporary name, onto the disk, and renames it: a reader never sees half of it. A link stays one.
 *
 * @throws the system's error where it cannot be written; then nothing is left.
 */
export function writeWhole(path: string, text: string): void {
  const target = targetOf(path);
  replaceWith(target, (temporary) => writeFileSync(temporary, text, { flush: true }));
}

function replaceWith(target: string, write: (temporary: string) => void): void {
  const temporary = temporaryName(target);
  try {
    write(temporary);
    renameSync(temporary, target);
    syncDirectory(dirname(target));
  } catch (error) {
    removeQuietly(temporary);
    throw error;
  }
}

/**
 * Leaves of a file what stands in `ranges`, which rise and don't touch; all at once, and in bounded memory. A file that
 * only loses its end is cut in place.
 */
export function keepRanges(path: string, ranges: readonly LineRange[]): void {
  const target = targetOf(path);
  const [first] = ranges;
  if (ranges.length === 0 || (ranges.length === 1 && first!.start === 0)) {
    const file = openSync(target, 'r+');
    try {
      ftruncateSync(file, first?.end ?? 0);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    return;
  }
  replaceWith(target, (temporary) => copyRanges(target, ranges, temporary));
}

const COPY_BYTES = 1 << 20;

function copyRanges(from: string, ranges: readonly LineRange[], to: string): void {
  const source = openRegularFile(from);
  try {
    const copy = openSync(to, 'w');
    try {
      const buffer = new Uint8Array(COPY_BYTES);
      for (const { start, end } of ranges) {
        for (let at = start; at < end; ) {
          const count = readFully(source, buffer.subarray(0, Math.min(buffer.length, end - at)), at);
          if (count === 0) throw new Error(`${from} became shorter while it was copied`);
          writeFully(copy, buffer.subarray(0, count));
          at += count;
        }
      }
      fsyncSync(copy);
    } finally {
      closeSync(copy);
    }
  } finally {
    closeSync(source);
  }
}

function writeFully(file: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
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
  const backupOf = (path: string) => temporaryName(`${path}.before`);
  const done: Rewrite[] = [];
  try {
    for (const { path, text } of rewrites) {
      writeFileSync(temporaryName(path), text, { flush: true });
      chmodSync(temporaryName(path), statSync(path).mode);
    }
    for (const { path, before } of rewrites) {
      if (readFileSync(path, 'utf8') !== before) throw new Error(`${path} was changed meanwhile`);
      keepAs(path, backupOf(path));
    }
    for (const rewrite of rewrites) {
      renameSync(temporaryName(rewrite.path), rewrite.path);
      done.push(rewrite);
    }
    for (const directory of new Set(rewrites.map(({ path }) => dirname(path)))) syncDirectory(directory);
  } catch (error) {
    // What was there is put back by renaming: it needs no room on a disk that is full.
    for (const { path } of done) renameSync(backupOf(path), path);
    throw error;
  } finally {
    for (const { path } of rewrites) [temporaryName(path), backupOf(path)].forEach(removeQuietly);
  }
}

function keepAs(path: string, backup: string): void {
  try {
    linkSync(path, backup);
  } catch {
    // Not every file system has hard links.
    copyFileSync(path, backup);
  }
}
