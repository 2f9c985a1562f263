/** @file Words by number, through every growth of the table. */
import { expect, test } from 'vitest';
import { WordTable } from '../../../../src/inputs/text/vocabularies/wordTable.js';

const encoder = new TextEncoder();

test('each of many words has one number, whatever was grown in between, and none after the table is cleared', () => {
  const table = new WordTable();
  const words = Array.from({ length: 20_000 }, (_, i) =>
    encoder.encode(i % 3 === 0 ? `w${i}` : `word ${i * 7}`),
  );
  const numbers = () => words.map((word) => table.numberOf(word, 0, word.length));
  const first = words.map((_, i) => i);
  expect(numbers()).toEqual(first);
  expect(numbers()).toEqual(first);
  expect([table.size, table.numBytes]).toEqual([
    words.length,
    words.reduce((sum, { length }) => sum + length, 0),
  ]);
  table.clear();
  expect([table.size, numbers().at(-1)]).toEqual([0, words.length - 1]);
});

test('a word is a part of the bytes, and may be empty', () => {
  const table = new WordTable();
  const bytes = encoder.encode('aabaab');
  const parts = [
    [0, 1],
    [0, 3],
    [3, 6],
    [2, 2],
    [0, 0],
    [1, 2],
  ] as const;
  expect(parts.map(([start, end]) => table.numberOf(bytes, start, end))).toEqual([0, 1, 1, 2, 2, 0]);
});
