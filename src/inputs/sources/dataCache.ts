/** @file Files made from data, kept in the cache for later runs. */
import { createHash } from 'node:crypto';
import { readdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { cachePath } from '../../compiler/native/toolchain/cacheFolder.js';
import { makeDirectory, removeQuietly, removeTemporaries, temporaryName } from '../../files/index.js';

/** A folder of the cache. */
export interface DataCache {
  readonly name: string;
  /** All its files together take this much, or one file does. */
  readonly mostBytes: number;
}

/**
 * The path of a cache's file, which is made where it is not there. Those that were not used for longest go where there are
 * too many; who has one open still reads it.
 *
 * @param key all that the file depends on.
 * @param write makes the file at the path it is given.
 * @throws what `write` throws, and the system's error where the cache can't be written.
 */
export function cachedFile(cache: DataCache, key: readonly unknown[], write: (path: string) => void): string {
  const folder = join(cachePath(process.env), cache.name);
  const digest = createHash('sha256').update(JSON.stringify(key)).digest('hex');
  const path = join(folder, digest.slice(0, 32));
  if (touch(path)) return path;
  makeDirectory(folder);
  removeTemporaries(folder);
  // Threads of one process may make the same file.
  const temporary = temporaryName(`${path}-${threadId}`);
  try {
    write(temporary);
    renameSync(temporary, path);
  } finally {
    removeQuietly(temporary);
  }
  dropOld(folder, path, cache.mostBytes);
  return path;
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
