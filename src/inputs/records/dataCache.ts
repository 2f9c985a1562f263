/** @file Files made from data, kept in the cache for later runs. */
import { createHash } from 'node:crypto';
import { readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { cachePath, makeFolder } from '../../compiler/native/toolchain/index.js';
import { removeQuietly, removeTemporaries, syncFile, temporaryName } from '../../files/index.js';
import { settledVersion } from '../../system/index.js';
import { FileError } from '../inputErrors.js';

/** A folder of the cache. */
export interface DataCache {
  readonly name: string;
  /** All its files together take this much, or one file does. */
  readonly mostBytes: number;
}

/** A file of data whose contents a file of a cache is made from. */
export interface CachedSource {
  readonly path: string;
  /** That of `versionOf`, before any of it was read. */
  readonly version: string;
}

/**
 * The path of a cached file, which is created if missing. The least recently used files are removed when there are too
 * many; processes that have one open can still read it.
 *
 * @param key all that the file depends on beside its source.
 * @param write makes the file at the path it is given.
 * @throws the error of `write`; FileError if the source changes meanwhile; the system's error if the cache can't be
 * written.
 */
export function cachedFile(
  cache: DataCache,
  source: CachedSource,
  key: readonly unknown[],
  write: (path: string) => void,
): string {
  const path = pathOf(cache, source, key);
  const folder = dirname(path);
  if (touch(path)) return path;
  makeFolder(folder);
  removeTemporaries(folder);
  // Threads of one process may make the same file.
  const temporary = temporaryName(`${path}-${threadId}`);
  try {
    checkUnchanged(source);
    write(temporary);
    checkUnchanged(source);
    // After a power failure, an empty file under its final name would pass for the data's.
    syncFile(temporary);
    renameSync(temporary, path);
  } finally {
    removeQuietly(temporary);
  }
  dropOld(folder, path, cache.mostBytes);
  return path;
}

function checkUnchanged({ path, version }: CachedSource): void {
  if (settledVersion(path) === version) return;
  throw new FileError(
    `${path} changed while it was being read. Start again when it is no longer written to.`,
  );
}

/** The path of a cache's file; undefined if there is none. */
export function keptFile(
  cache: DataCache,
  source: CachedSource,
  key: readonly unknown[],
): string | undefined {
  const path = pathOf(cache, source, key);
  return touch(path) ? path : undefined;
}

function pathOf(cache: DataCache, { path, version }: CachedSource, key: readonly unknown[]): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([path, version, ...key]))
    .digest('hex');
  return join(cachePath(process.env), cache.name, digest.slice(0, 32));
}

function touch(path: string): boolean {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    // Another process has removed it, or the cache can only be read.
  }
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function dropOld(folder: string, newest: string, mostBytes: number): void {
  const files = readdirSync(folder)
    .map((name) => join(folder, name))
    .flatMap((path) => {
      const status = statSync(path, { throwIfNoEntry: false });
      return status === undefined || path === newest || path.endsWith('.tmp')
        ? []
        : [{ path, size: status.size, used: status.mtimeMs }];
    })
    .sort((a, b) => b.used - a.used);
  let bytes = statSync(newest).size;
  for (const { path, size } of files) {
    bytes += size;
    if (bytes > mostBytes) rmSync(path, { force: true });
  }
}
