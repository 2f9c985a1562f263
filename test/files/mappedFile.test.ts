/** @file Mapped files have the bytes of the file, which writing to them leaves as it is. */
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadMapFile } from '../../src/files/index.js';
import { temporaryDirectory } from '../command.js';

const map = await loadMapFile();

test.skipIf(map === undefined)('a mapped file outlives its descriptor and its name', () => {
  const path = join(temporaryDirectory(), 'numbers');
  writeFileSync(path, Float32Array.of(1, 2, 3));
  const file = openSync(path, 'r');
  const [bytes, others] = [map!(file, path)!, map!(file, path)!];
  closeSync(file);
  new Float32Array(bytes, 4)[0] = 20;
  expect([...new Float32Array(bytes)]).toEqual([1, 20, 3]);
  expect([...new Float32Array(others)]).toEqual([1, 2, 3]);
  expect([...new Float32Array(Uint8Array.from(readFileSync(path)).buffer)]).toEqual([1, 2, 3]);
  rmSync(path);
  expect([...new Float32Array(others)]).toEqual([1, 2, 3]);
});

test.skipIf(map === undefined)('an empty file, and what is no file, are not mapped', () => {
  const path = join(temporaryDirectory(), 'empty');
  writeFileSync(path, '');
  const file = openSync(path, 'r');
  expect(map!(file, path)).toBeUndefined();
  closeSync(file);
  expect(() => map!(file, path)).toThrow('EBADF');
});
