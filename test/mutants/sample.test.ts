/** @file Samples of mutants. */
import { expect, test } from 'vitest';
import { root } from '../docs/pages.js';
import { roomOf, rooms, sampleOf, sourceFiles } from './sample.js';

test('every source file is in a room, and every room has files', () => {
  const found = new Set(sourceFiles(root).map(roomOf));
  expect([...found].sort()).toEqual(Object.keys(rooms).sort());
  expect(roomOf('src/compiler/native/plan/once.ts')).toBe('native');
  expect(() => roomOf('bench/train.ts')).toThrow(
    'bench/train.ts is in none of the rooms of test/mutants/sample.ts.',
  );
});

test('a seed draws the same mutants, rooms take turns, and no line has two', async () => {
  const files = ['src/files/crc32c.ts', 'src/learners/transforms/clipping.ts'];
  const sample = await sampleOf(root, files, 5, 3);
  expect(await sampleOf(root, files.slice(0, 1), 5, 3)).toEqual(
    sample.filter(({ file }) => file === files[0]),
  );
  expect(sample.map(({ file }) => file)).toEqual(Array.from({ length: 5 }, () => files).flat());
  expect(new Set(sample.map(({ file, line }) => `${file}:${line}`)).size).toBe(10);
});
