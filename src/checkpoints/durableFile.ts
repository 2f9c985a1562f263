/** @file Files written chunk by chunk, with their digests, and on the disk when the call returns. */

import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeDirectory, removeQuietly, syncDirectory, temporaryName } from '../files/index.js';
import { ioError } from './checkpointErrors.js';

/** Bytes that are written at once: hashing leaves them in the core's cache, from where the system takes them. */
export const PIECE_BYTES = 1 << 18;

/** Digests of a file's chunks, which are as long as each other but for the last. */
export interface ChunkDigests {
  readonly byteLength: number;
  /** SHA-256 of each, in file order. */
  readonly sha256: readonly string[];
}

/** Size and SHA-256 of a file, which reveal truncation and bit rot. */
export interface FileDigest {
  readonly byteLength: number;
  readonly sha256: string;
  /** Digests of its chunks, where several processes wrote it: `sha256` is then that of their texts. */
  readonly chunks?: ChunkDigests | undefined;
}

/**
 * Creates `path`, which must not exist, from the chunks' bytes and waits until they are on the disk.
 *
 * @returns the digest of the written bytes
 */
export function writeFileDurably(path: string, chunks: Iterable<ArrayBufferView>): FileDigest {
  const file = openSync(path, 'wx');
  try {
    const hash = createHash('sha256');
    let byteLength = 0;
    for (const chunk of chunks) {
      const bytes = bytesOf(chunk);
      for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
        const piece = bytes.subarray(start, start + PIECE_BYTES);
        hash.update(piece);
        for (let done = 0; done < piece.length; ) done += writeSync(file, piece, done);
      }
      byteLength += bytes.length;
    }
    fsyncSync(file);
    return { byteLength, sha256: hash.digest('hex') };
  } finally {
    closeSync(file);
  }
}

/** Writes a file whole, in the place of one that may be there, or not at all. @throws CheckpointError, and as `chunks` do */
export function replaceDurably(path: string, chunks: Iterable<ArrayBufferView>): void {
  const temporary = temporaryName(path);
  try {
    makeDirectory(dirname(path));
    writeFileDurably(temporary, chunks);
    renameSync(temporary, path);
    syncDirectory(dirname(path));
  } catch (cause) {
    removeQuietly(temporary);
    throw ioError(path, 'cannot be written', cause);
  }
}

export function bytesOf(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}
