/** @file Reads of a file of tensors that give all bytes, or an error. */
import { readFully } from '../files/index.js';
import { CheckpointError } from './checkpointErrors.js';

/** Bytes of a file that are read at once. */
export const CHUNK_BYTES = 1 << 21;

/** Fills `target` with bytes from `position` on. @throws CheckpointError `broken` where the file ends before */
export function readWhole(file: number, path: string, target: Uint8Array, position: number): void {
  const count = readFully(file, target, position);
  if (count === target.length) return;
  const [expected, found] = [position + target.length, position + count];
  throw new CheckpointError('broken', path, `truncated: expected ${expected} bytes, found ${found}`);
}

/** Reads bytes of a tensor from byte `at` of it on. */
type ReadAt = (target: Uint8Array, at: number) => void;

/** Whether two tensors of so many bytes are the same. */
export function areSameBytes(byteLength: number, ours: ReadAt, theirs: ReadAt): boolean {
  for (let at = 0; at < byteLength; at += CHUNK_BYTES) {
    const length = Math.min(CHUNK_BYTES, byteLength - at);
    const [a, b] = [new Uint8Array(length), new Uint8Array(length)];
    ours(a, at);
    theirs(b, at);
    if (Buffer.compare(a, b) !== 0) return false;
  }
  return true;
}
