/** @file Entries of the cache, and eviction of the least recently used. */
import { readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readRegularFile } from '../../../files/index.js';
import { inUse, isAlive } from './useMarks.js';

export const MANIFEST = 'entry.json';
/** Prefix of the folders that keep failed builds for inspection. */
export const FAILED = 'failed-';

/** A cache entry, as listed by `luthier cache list`. */
export interface CachedEntry {
  readonly kind: 'runtime' | 'program' | 'plan' | 'failed';
  readonly name: string;
  readonly folder: string;
  readonly bytes: number;
  /** Last time that a process opened it. */
  readonly lastUsed: Date;
  readonly inUse: boolean;
  readonly compiler: string;
}

/** All entries, most recently used first. */
export function listEntries(path: string): CachedEntry[] {
  return readNames(path)
    .flatMap((name) => describe(join(path, name), name) ?? [])
    .sort((a, b) => b.lastUsed.getTime() - a.lastUsed.getTime() || a.folder.localeCompare(b.folder));
}

function readNames(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** Total size of an entry's files. */
export function folderBytes(folder: string): number {
  const sizes = readNames(folder).map(
    (name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size,
  );
  return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}

/** Undefined for other files, and for entries that have just been removed. */
function describe(folder: string, fileName: string): CachedEntry | undefined {
  const kind = /^(runtime|program|plan|mpi|failed)-[0-9a-f]+$/.exec(fileName)?.[1] as
    | CachedEntry['kind']
    | undefined;
  if (kind === undefined) return undefined;
  try {
    const bytes = folderBytes(folder);
    const manifest = readManifest(folder);
    const lastUsed = statSync(manifest === undefined ? folder : join(folder, MANIFEST)).mtime;
    const { name = fileName, compiler = '' } = manifest ?? {};
    return { kind, name, folder, bytes, lastUsed, inUse: inUse(folder), compiler };
  } catch {
    return undefined;
  }
}

/** Undefined for a damaged or failed entry. */
function readManifest(folder: string): { name: string; compiler: string } | undefined {
  try {
    return JSON.parse(readRegularFile(join(folder, MANIFEST)).toString()) as {
      name: string;
      compiler: string;
    };
  } catch {
    return undefined;
  }
}

/** Removes an entry, atomically for observers. */
export function dropEntry({ folder }: CachedEntry): void {
  const aside = `${folder}.dropped-${process.pid}`;
  try {
    renameSync(folder, aside);
  } catch {
    // Another process has dropped it.
    return;
  }
  rmSync(aside, { recursive: true, force: true });
}

/**
 * Evicts the least recently used entries until the rest takes at most `limit` bytes; entries in use stay.
 *
 * @returns the bytes of the rest.
 */
export function dropOld(path: string, limit: number): number {
  removeLeftovers(path);
  const entries = listEntries(path);
  let bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
  for (const entry of entries.reverse()) {
    if (bytes <= limit) break;
    if (entry.inUse) continue;
    dropEntry(entry);
    bytes -= entry.bytes;
  }
  return bytes;
}

/** Removes the leftovers of processes killed while building or dropping an entry. */
export function removeLeftovers(path: string): void {
  for (const name of readNames(path)) {
    const pid = /^\.build-(\d+)-|\.dropped-(\d+)$/.exec(name);
    if (pid !== null && !isAlive(Number(pid[1] ?? pid[2])))
      rmSync(join(path, name), { recursive: true, force: true });
  }
}
