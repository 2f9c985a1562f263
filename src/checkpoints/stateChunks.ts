/** @file Chunks of a state's file that several processes write and read, with a digest each. */
import { createHash } from 'node:crypto';
import type { ChunkDigests, FileDigest } from './durableFile.js';

/** Chunks of a file, about; fewer of a small one. */
const CHUNKS = 4096;
/** A page of a file system: two machines that write to one page of a shared file may lose bytes of each other. */
const LEAST_BYTES = 4096;

/** Length of the chunks of a file: a power of two. */
export const chunkLength = (fileLength: number): number =>
  Math.max(LEAST_BYTES, 2 ** Math.ceil(Math.log2(Math.max(1, fileLength / CHUNKS))));

/** Bytes of a file, `end` behind the last. */
export interface ByteRange {
  readonly begin: number;
  readonly end: number;
}

/** The bytes of a file that process `index` of `count` writes or reads: whole chunks. */
export function rangeOf(fileLength: number, chunk: number, index: number, count: number): ByteRange {
  const chunks = Math.ceil(fileLength / chunk);
  const border = (at: number): number => Math.min(fileLength, Math.floor((at * chunks) / count) * chunk);
  return { begin: border(index), end: border(index + 1) };
}

/** SHA-256 of each chunk of some bytes, which begin with one. */
export function digestsOf(bytes: Uint8Array, chunk: number): string[] {
  const digests: string[] = [];
  for (let at = 0; at < bytes.length; at += chunk)
    digests.push(
      createHash('sha256')
        .update(bytes.subarray(at, at + chunk))
        .digest('hex'),
    );
  return digests;
}

/** The digest of a file by those of its chunks: the SHA-256 of their texts, one behind the other. */
export const digestOfChunks = (byteLength: number, chunks: ChunkDigests): FileDigest => ({
  byteLength,
  sha256: createHash('sha256').update(chunks.sha256.join('')).digest('hex'),
  chunks,
});
