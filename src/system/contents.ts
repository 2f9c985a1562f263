/** @file Digests of the reads of a process, by the paths of `recordReads`: equal if reading again gives the same. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { versionOf } from './fileVersion.js';

/** Larger files are identified by their versions. */
const largestRead = 64_000_000n;
/** Folders of more files are not looked through. */
const mostListed = 2000;

/** A digest of texts and bytes, in their order. */
export function digestOf(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('base64');
}

/** Contents at an absolute path, or of an environment variable; undefined if unknown. */
export function contentsAt(path: string): string | undefined {
  try {
    return digestAt(path);
  } catch {
    // The system refuses: a link to itself, a file or folder without permission.
    return undefined;
  }
}

function digestAt(path: string): string | undefined {
  if (path.startsWith('env:')) {
    const name = path.slice(4);
    return digestOf(JSON.stringify(name === '' ? process.env : (process.env[name] ?? null)));
  }
  if (path === '/proc/cpuinfo')
    return digestOf(readFileSync(path, 'latin1').replace(/^(?:cpu MHz|bogomips).*\n/gim, ''));
  if (/^\/(?:proc|sys|dev)?(?:\/|$)/.test(path)) return undefined;
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return 'absent';
  if (stats.isDirectory()) return path.endsWith('/') ? listingOf(path) : 'folder';
  if (!stats.isFile()) return undefined;
  return stats.size > largestRead ? versionOf(stats) : digestOf(readFileSync(path));
}

function listingOf(folder: string): string | undefined {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort();
  if (names.length > mostListed) return undefined;
  const contents = names.map((name) => contentsAt(join(folder, name)));
  return contents.includes(undefined) ? undefined : digestOf(...names, ...(contents as string[]));
}
