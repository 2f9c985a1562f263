/** @file Rows of CSV files, however they are cut into parts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { csvRows } from '../../../src/inputs/sources/csvRows.js';
import { openWatched } from '../../../src/inputs/sources/watchedFile.js';
import { temporaryDirectory } from '../../command.js';

const path = join(temporaryDirectory(), 'a.csv');

function rowsOf(text: string, chunkBytes?: number, columns: readonly string[] | null = null) {
  writeFileSync(path, text);
  const file = { name: 'a.csv', path };
  return openWatched(file, (watched) => [...csvRows(watched, { delimiter: ',', columns }, chunkBytes)]);
}

test('any values come back with the lines on which their rows end, whatever is read at once', () => {
  const value = fc.string({
    unit: fc.constantFrom('a', 'ü', '"', ',', '\n', '\r\n', ' ', '𝄞'),
    maxLength: 6,
  });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(value, value), { maxLength: 20 }),
      fc.integer({ min: 1, max: 40 }),
      (rows, size) => {
        const quoted = rows.map(
          (row) => `${row.map((text) => `"${text.replaceAll('"', '""')}"`).join(',')}\n`,
        );
        const found = rowsOf(`\uFEFFx,y\n${quoted.join('')}`, size);
        expect(found.map(([record]) => record)).toEqual(rows.map(([x, y]) => ({ x, y })));
        const ends = quoted.map(
          (_, i) =>
            quoted
              .slice(0, i + 1)
              .join('')
              .split('\n').length,
        );
        // csv-parse takes a carriage return within quotes for a line of its own.
        if (!quoted.join('').includes('\r')) expect(found.map(([, line]) => line)).toEqual(ends);
      },
    ),
    { numRuns: 200 },
  );
});

test('columns without a header, blank lines, and a last line without an end', () => {
  expect(rowsOf('1,2\n\n3,4', 3, ['x', 'y'])).toEqual([
    [{ x: '1', y: '2' }, 1],
    [{ x: '3', y: '4' }, 3],
  ]);
  expect(rowsOf('', 3)).toEqual([]);
});

test('what is no row is told by its line, whatever was read before it', () => {
  const text = `x,y\n${'1,2\n'.repeat(9)}3\n`;
  for (const size of [4, 2 ** 20])
    expect(() => rowsOf(text, size)).toThrow(
      `${path} is not a CSV file of the kind expected: Invalid Record Length: columns length is 2, got 1 on line 11`,
    );
  expect(() => rowsOf('x,y\n1,2\n"3,4\n', 5)).toThrow(/Quote Not Closed: .* line/);
});
