/** @file Digests of whole files, kept in the cache until the files change. */
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, readFileSync, writeFileSync } from 'node:fs';
import { openRegularFile, readFully } from '../../files/index.js';
import { versionOf } from '../../system/index.js';
import type { DataIdentity } from '../dataIdentity.js';
import { FileError } from '../inputErrors.js';
import { type CachedSource, cachedFile, type DataCache, keptFile } from './dataCache.js';

const CACHE: DataCache = { name: 'digests', mostBytes: 2 ** 20 };

/** Digests of smaller files take less than a millisecond. */
const SMALLEST_KEPT = 2 ** 20;
const CHUNK_BYTES = 2 ** 20;

/** The identity of an input's data with a digest of each file. @throws FileError for one that can't be read. */
export function withDigests(identity: DataIdentity): DataIdentity {
  if (identity.files === undefined) return identity;
  return { ...identity, files: identity.files.map((file) => ({ ...file, sha256: fileDigest(file.path) })) };
}

/** SHA-256 of a file's bytes, hexadecimal. @throws FileError where it can't be read */
function fileDigest(path: string): string {
  let file: number | undefined;
  try {
    file = openRegularFile(path);
    return fstatSync(file).size < SMALLEST_KEPT ? digestOf(file) : keptDigest(path, file);
  } catch (error) {
    if (error instanceof FileError) throw error;
    throw new FileError(`${path} cannot be read: ${(error as Error).message}`, { cause: error });
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** The digest from the cache, or of an open file. */
function keptDigest(path: string, file: number): string {
  let digest: string | undefined;
  const source = { path, version: versionOf(fstatSync(file, { bigint: true })) };
  try {
    const kept = cachedFile(CACHE, source, [], (to) => {
      digest = digestOf(file);
      writeFileSync(to, digest);
    });
    digest ??= readFileSync(kept, 'latin1');
  } catch (error) {
    // Else the cache can't be written.
    if (error instanceof FileError) throw error;
  }
  return digest !== undefined && /^[0-9a-f]{64}$/.test(digest) ? digest : digestOf(file);
}

/** Whether an open file has the bytes that a version of it had; false where that can't be told. */
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
