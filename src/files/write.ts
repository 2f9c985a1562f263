/** @file Durable writes of whole files, and of the directories above them. */
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
import { UnfitFileError } from './fileErrors.js';
import type { LineRange } from './linesFromEnd.js';
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

/** The target of a link, by whose name an unmounted disk is recognised. */
function linkText(path: string): string {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink ? ` but a link to ${readlinkSync(path)}, which is none or not there` : '';
}

/** Errors of file systems that can't sync a directory, and of systems where it may not be opened. */
const CANNOT_SYNC = new Set(['EACCES', 'EBADF', 'EINVAL', 'EISDIR', 'ENOTSUP', 'EPERM']);

/** Makes creations, renames and removals in a directory durable, where the system can. */
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

/** Waits until a file's bytes are on the disk, before it is renamed or another copy goes. @throws the system's error */
export function syncFile(path: string): void {
  const file = openSync(path, 'r+');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Removes a failure's leftovers. Never throws: the first error is the one to report. */
export function removeQuietly(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // Temporaries of processes that have ended are removed later.
  }
}

/** The file to be replaced, behind links. */
function targetOf(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ? realpathSync(path) : path;
}

/**
 * Writes a file durably under a temporary name and renames it, so that readers never see half of it. A link stays one.
 *
 * @throws the system's error where it can't be written; then nothing is left.
 */
export function writeWhole(path: string, contents: string | Uint8Array): void {
  const target = targetOf(path);
  replaceWith(target, (temporary) => writeFileSync(temporary, contents, { flush: true }));
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
 * Drops all of a file but `ranges`, which rise and don't touch, at once and in bounded memory. A file that only loses its end
 * is cut in place.
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

/** Writes all bytes to an open file, from where it is. @throws the system's error. */
export function writeFully(file: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
}

/** New text of an existing file. */
export interface Rewrite {
  readonly path: string;
  /** The text that the new one was derived from. */
  readonly before: string;
  readonly text: string;
}

/**
 * Writes several files, all or none. Each keeps its permissions.
 *
 * @throws Error where one can't be written or is no longer as `before`; then all are left as they were.
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
    // Former files are put back by renaming, which needs no room on a full disk.
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
