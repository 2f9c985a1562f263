/** @file Tables of numbers with names: as text, as Markdown, as a picture, in metrics.jsonl, at the limits of each. */
import { expect, test } from 'vitest';
import {
  type NamedTable,
  tableFields,
  tableImage,
  tableMarkdown,
  tableText,
} from '../../src/summaries/index.js';

const { NaN: none } = Number;
const confusion: NamedTable = {
  rows: ['cat', 'dog'],
  columns: ['cat', 'dog'],
  values: [
    [3, 1],
    [0, none],
  ],
};
/** A table whose numbers are those of their columns. */
const sized = (rows: number, columns: number): NamedTable => ({
  rows: Array.from({ length: rows }, (_, i) => `r${i}`),
  columns: Array.from({ length: columns }, (_, i) => `c${i}`),
  values: Array.from({ length: rows }, () => Array.from({ length: columns }, (_, i) => i)),
});

test('text has four digits, a dash for an undefined value, and at most twenty rows and columns', () => {
  expect(tableText(confusion)).toBe('     cat  dog\ncat    3    1\ndog    0    –');
  const values = [[-0, 12_345, 0.000_123_456, Number.POSITIVE_INFINITY, -1.000_04]];
  expect(tableText({ ...sized(1, 5), values })).toBe(
    '    c0     c1         c2        c3  c4\nr0   0  12350  0.0001235  Infinity  -1',
  );
  for (const [rows, columns] of [
    [20, 1],
    [1, 20],
  ] as const)
    expect(tableText(sized(rows, columns)).split('\n').length).toBe(rows + 1);
  expect(tableText(sized(21, 1))).toBe('21 × 1 numbers, in metrics.jsonl and TensorBoard');
  expect(tableText(sized(1, 21))).toBe('1 × 21 numbers, in metrics.jsonl and TensorBoard');
});

test('Markdown keeps bars, emphasis and line breaks of names inside of cells', () => {
  const values = [[1.5, none]];
  expect(tableMarkdown({ rows: ['a|b'], columns: ['x\n_y_', '<z>'], values })).toBe(
    '|  | x \\_y\\_ | \\<z\\> |\n|---|---:|---:|\n| a\\|b | 1.5 | – |',
  );
});

test('a picture has a square a cell, darker for larger shares of the row', () => {
  const { shape, data } = tableImage({
    ...confusion,
    values: [
      [3, 1],
      [0, 0],
    ],
  });
  expect(shape).toEqual([1, 32, 32, 1]);
  const at = (y: number, x: number) => data[y * 32 + x];
  expect([at(0, 0), at(15, 15), at(0, 16), at(15, 31)]).toEqual([0.25, 0.25, 0.75, 0.75]);
  expect([at(16, 0), at(31, 31)]).toEqual([1, 1]);
});

test.each([
  [1, 16],
  [64, 16],
  [65, 15],
  [512, 2],
  [513, 1],
  [1025, 1],
])('a picture of %d columns has squares of %d pixels', (columns, side) => {
  expect(tableImage(sized(1, columns)).shape).toEqual([1, side, side * columns, 1]);
  expect(tableImage(sized(columns, 1)).shape).toEqual([1, side * columns, side, 1]);
});

test('metrics.jsonl has all values, or of large tables those that are not 0; equal names once', () => {
  expect(tableFields(confusion)).toEqual({ classes: ['cat', 'dog'], values: confusion.values });
  const other = { ...confusion, columns: ['dog', 'cat'] };
  expect(tableFields(other)).toEqual({ rows: ['cat', 'dog'], columns: ['dog', 'cat'], values: other.values });
  expect(tableFields(sized(50, 50))).toHaveProperty('values');
  const { rows, columns, values } = sized(2501, 1);
  expect(
    tableFields({ rows, columns, values: values.map((_, i) => [i === 7 ? none : i === 9 ? 5 : 0]) }),
  ).toEqual({
    ...{ rows, columns },
    cells: [
      [7, 0, none],
      [9, 0, 5],
    ],
  });
});
