/** @file Files that a power failure could lose: a model of the disk's cache, fed with a process's system calls. */
import { dirname } from 'node:path';
import type { SystemCall } from './preload.js';

/** State of the disk after a process's calls. */
export interface Disk {
  /** What was renamed before it was on the disk, in order: readers could see half of it after a power failure. */
  readonly early: readonly string[];
  /** Files whose bytes, and directories whose entries, are not on the disk at the end; a directory ends in `/`. */
  readonly unsynced: readonly string[];
  /** Files at the end. */
  readonly files: readonly string[];
}

const isAtOrBelow = (path: string, top: string): boolean => path === top || path.startsWith(`${top}/`);

/**
 * Replays calls. Bytes are on the disk after a sync of their file, and creations and renames after one of their directory;
 * a removal that is lost does no harm.
 */
export function diskAfter(calls: readonly SystemCall[]): Disk {
  const files = new Set<string>();
  const unsynced = new Set<string>();
  const early: string[] = [];
  for (const { call, path, from } of calls) {
    const entry = `${dirname(path)}/`;
    if (call === 'create' && !files.has(path)) unsynced.add(entry);
    if (call === 'create') files.add(path);
    if (['create', 'write', 'ftruncate'].includes(call)) unsynced.add(path);
    if (call === 'mkdir') unsynced.add(entry);
    if (call === 'fsync') for (const name of [path, `${path}/`]) unsynced.delete(name);
    if (call === 'unlink') for (const set of [files, unsynced]) set.delete(path);
    if (call === 'rmdir') unsynced.delete(`${path}/`);
    if (call !== 'rename') continue;
    early.push(...[...unsynced].filter((name) => isAtOrBelow(name, from!)));
    for (const set of [files, unsynced])
      for (const name of [...set].filter((name) => isAtOrBelow(name, from!))) {
        set.delete(name);
        set.add(`${path}${name.slice(from!.length)}`);
      }
    unsynced.add(entry);
    unsynced.add(`${dirname(from!)}/`);
  }
  return { early, unsynced: [...unsynced].sort(), files: [...files].sort() };
}
