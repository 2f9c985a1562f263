/** @file Digests of whole files, kept in the cache until the files change. */
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { openRegularFile, readFully } from '../../files/index.js';
import { versionOf } from '../../system/index.js';
import type { DataFolder, DataIdentity } from '../dataIdentity.js';
import { FileError } from '../inputErrors.js';
import { type CachedSource, cachedFile, type DataCache, keptFile } from './dataCache.js';

const CACHE: DataCache = { name: 'digests', mostBytes: 2 ** 20 };

/** Digests of smaller files take less than a millisecond. */
const SMALLEST_KEPT = 2 ** 20;
const CHUNK_BYTES = 2 ** 20;

/**
 * The identity of an input's data with a digest of each file and folder.
 *
 * @throws FileError for a file that can't be read; in a folder, where inputs may skip some, one has the reason as its
 *   digest.
 */
export function withDigests(identity: DataIdentity): DataIdentity {
  const { files, folders } = identity;
  return {
    ...identity,
    ...(files && { files: files.map((file) => ({ ...file, sha256: fileDigest(file.path) })) }),
    ...(folders && { folders: folders.map(withFolderDigest) }),
  };
}

/** The folder with the size of its files and a digest of their names, sizes and bytes, read again after any change. */
function withFolderDigest({ members = [], ...folder }: DataFolder): DataFolder {
  const versions = createHash('sha256');
  const sizes = members.map(({ name, path }) => {
    const status = statSync(path, { bigint: true, throwIfNoEntry: false });
    versions.update(`${name}\0${status && versionOf(status)}\n`);
    return Number(status?.size ?? 0);
  });
  const status = statSync(folder.path, { bigint: true, throwIfNoEntry: false });
  const source = { path: folder.path, version: status ? versionOf(status) : '' };
  const sha256 = keptDigest(source, [versions.digest('hex')], () => {
    const hash = createHash('sha256');
    for (const [i, { name, path }] of members.entries())
      hash.update(`${posix.relative(folder.name, name)}\0${sizes[i]}\0${digestOrReason(path)}\n`);
    return hash.digest('hex');
  });
  return { ...folder, size: sizes.reduce((sum, size) => sum + size, 0), sha256 };
}

function digestOrReason(path: string): string {
  try {
    return opened(path, digestOf);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable';
  }
}

/** SHA-256 of a file's bytes, hexadecimal. @throws FileError where it can't be read */
function fileDigest(path: string): string {
  try {
    return opened(path, (file) => {
      if (fstatSync(file).size < SMALLEST_KEPT) return digestOf(file);
      const source = { path, version: versionOf(fstatSync(file, { bigint: true })) };
      return keptDigest(source, [], () => digestOf(file));
    });
  } catch (error) {
    if (error instanceof FileError) throw error;
    throw new FileError(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** The digest of an open file, which is closed. @throws the system's error if it can't be opened */
function opened(path: string, digest: (file: number) => string): string {
  const file = openRegularFile(path);
  try {
    return digest(file);
  } finally {
    closeSync(file);
  }
}

/** The digest from the cache, or computed. */
function keptDigest(source: CachedSource, key: readonly unknown[], compute: () => string): string {
  let digest: string | undefined;
  try {
    const kept = cachedFile(CACHE, source, key, (to) => {
      digest = compute();
      writeFileSync(to, digest);
    });
    digest ??= readFileSync(kept, 'latin1');
  } catch (error) {
    // Else the cache can't be written.
    if (error instanceof FileError) throw error;
  }
  return digest !== undefined && /^[0-9a-f]{64}$/.test(digest) ? digest : compute();
}

/** Whether an open file has the bytes that a version of it had; false if unknown. */
export function hasBytesOf(source: CachedSource, file: number): boolean {
  const kept = keptFile(CACHE, source, []);
  return kept !== undefined && readFileSync(kept, 'latin1') === digestOf(file);
}

function digestOf(file: number): string {
  const hash = createHash('sha256');
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = 0; ; ) {
    const length = readFully(file, chunk, at);
    if (length === 0) return hash.digest('hex');
    hash.update(chunk.subarray(0, length));
    at += length;
  }
}
