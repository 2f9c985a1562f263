/** @file Files of several threads: bytes, digests, and failures of each of them. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PIECE_BYTES, type Piece, piecesOf, writePipelined } from '../../src/checkpoints/pipelinedFile.js';
import { temporaryDirectory } from '../command.js';

test('pieces of any length are written and hashed in their order, and their memory is used again', async () => {
  const lengths = [8, PIECE_BYTES, 1, PIECE_BYTES - 3, 64, PIECE_BYTES, 7, 5000, 24];
  const bytesOf = (length: number, i: number) => Buffer.alloc(length, `piece ${i}`);
  const pieces = lengths.map((byteLength, i): Piece => {
    return { byteLength, write: (target) => target.set(bytesOf(byteLength, i)) };
  });
  const path = join(temporaryDirectory(), 'file');
  const expected = Buffer.concat(lengths.map(bytesOf));
  const digest = await writePipelined(path, pieces);
  expect(Buffer.compare(readFileSync(path), expected)).toBe(0);
  const sha256 = createHash('sha256').update(expected).digest('hex');
  expect(digest).toEqual({ byteLength: expected.length, sha256 });
  const long = Buffer.alloc(PIECE_BYTES + 5, 'long');
  expect([...piecesOf(long)].map(({ byteLength }) => byteLength)).toEqual([PIECE_BYTES, 5]);
});

test('a piece that fails, and a file that is there, are errors', async () => {
  const path = join(temporaryDirectory(), 'file');
  function* failing(): Generator<Piece> {
    yield* piecesOf(Buffer.from('begun'));
    throw new Error('no more');
  }
  await expect(writePipelined(path, failing())).rejects.toThrow('no more');
  expect(existsSync(path)).toBe(true);
  await expect(writePipelined(path, piecesOf(Buffer.from('again')))).rejects.toThrow('EEXIST');
});
