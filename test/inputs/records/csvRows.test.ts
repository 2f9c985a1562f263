/** @file Rows of CSV files, however they are cut into parts and whatever ends their lines. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { csvRows } from '../../../src/inputs/records/csvRows.js';
import { openWatched } from '../../../src/inputs/records/watchedFile.js';
import { temporaryDirectory } from '../../command.js';
import { runs } from '../../faults/campaign.js';

const path = join(temporaryDirectory(), 'a.csv');

function rowsOf(text: string | Uint8Array, chunkBytes?: number, columns: readonly string[] | null = null) {
  writeFileSync(path, text);
  const file = { name: 'a.csv', path };
  return openWatched(file, (watched) => [...csvRows(watched, { delimiter: ',', columns }, chunkBytes)]);
}

const error = (text: string | Uint8Array, size?: number): string => {
  try {
    rowsOf(text, size);
    return 'none';
  } catch (caught) {
    return (caught as Error).message.replaceAll(path, 'it');
  }
};

/** Lines of a text, ended by any of the three ends. */
const linesOf = (text: string): number => text.split(/\r\n|\n|\r/).length;

test('any values come back with the lines on which their rows begin, whatever ends these and is read at once', () => {
  const value = fc.string({
    unit: fc.constantFrom('a', 'ü', '"', ',', '\n', '\r', '\r\n', ' ', '𝄞'),
    maxLength: 6,
  });
  const end = fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\r\n', '\n\r');
  fc.assert(
    fc.property(
      fc.tuple(fc.constantFrom('', '\uFEFF'), end),
      fc.array(fc.tuple(value, value, end), { maxLength: 20 }),
      fc.integer({ min: 1, max: 40 }),
      fc.boolean(),
      ([mark, headerEnd], rows, size, isEnded) => {
        let text = `x,y${headerEnd}`;
        const wanted = rows.map(([x, y, rowEnd], r) => {
          const line = linesOf(text);
          const quoted = [x, y].map((field) => `"${field.replaceAll('"', '""')}"`).join(',');
          text += `${quoted}${isEnded || r + 1 < rows.length ? rowEnd : ''}`;
          return [{ x, y }, line];
        });
        expect(rowsOf(`${mark}${text}`, size)).toEqual(wanted);
      },
    ),
    { numRuns: runs(300, 40) },
  );
});

test('line ends that change within a file lose no rows', () => {
  const count = 5000;
  const ends = ['\r\n', '\n', '\r'];
  const text = Array.from({ length: count }, (_, i) => `${i}${ends[Math.floor((i / count) * 3)]}`).join('');
  for (const size of [7, 64, 2 ** 20])
    expect(rowsOf(`text\r\n${text}`, size).map(([{ text }]) => Number(text))).toEqual(
      Array.from({ length: count }, (_, i) => i),
    );
});

test('delimiters of several characters, and 100,000 columns', () => {
  const read = (size: number) => () =>
    openWatched({ name: 'a.csv', path }, (watched) => [
      ...csvRows(watched, { delimiter: '||', columns: null }, size),
    ]);
  writeFileSync(path, 'x||y\n"a||\n"||"b"\n|"||c\n');
  for (const size of [3, 2 ** 20]) expect(read(size)).toThrow('Invalid Opening Quote');
  writeFileSync(path, 'x||y\n"a||\n"||"b"\n|d||"|"\n');
  for (const size of [3, 2 ** 20])
    expect(read(size)()).toEqual([
      [{ x: 'a||\n', y: 'b' }, 2],
      [{ x: '|d', y: '|' }, 4],
    ]);
  const names = Array.from({ length: 100_000 }, (_, i) => `c${i}`).join(',');
  expect(Object.keys(rowsOf(`${names}\n${names}\n`)[0]![0])).toHaveLength(100_000);
  expect(error(`${names},c7\n`)).toBe("it:1: two columns are called 'c7'. Give each its own name.");
});

test('columns without a header, blank lines, and a last line without an end', () => {
  expect(rowsOf('1,2\n\n3,4', 3, ['x', 'y'])).toEqual([
    [{ x: '1', y: '2' }, 1],
    [{ x: '3', y: '4' }, 3],
  ]);
  expect(rowsOf('', 3)).toEqual([]);
  expect(rowsOf('\r\n\n', 1)).toEqual([]);
  expect(rowsOf('\n__proto__,x\n1,2\n', 4)).toEqual([[JSON.parse('{"__proto__": "1", "x": "2"}'), 3]]);
});

test('what is no row is told by its line, whatever was read before it', () => {
  const text = `x,y\r${'1,2\r\n'.repeat(8)}"1\r\n",2\n3\n`;
  for (const size of [4, 2 ** 20])
    expect(() => rowsOf(text, size)).toThrow(
      `${path} is not a CSV file of the kind expected: Invalid Record Length: columns length is 2, got 1 on line 12`,
    );
  for (const size of [5, 2 ** 20]) {
    expect(error('x,y\n1,2\n"3,4\r\n5,6\n', size)).toBe(
      'it:3: the quote at byte 8 is not closed before the end of the file. Close it, or write a quote within a text as two.',
    );
    // Quotes of rows before it, and two that are one within it.
    expect(error('x,y\n"1\n","a ""b"\n3,"4\n5,""\n', size)).toMatch(
      /^it:4: the quote at byte 19 is not closed/,
    );
    expect(error('x,y\n1,2\n\n"3"4,5\n', size)).toMatch(/Invalid Closing Quote: got "4" at line 4 /);
    expect(error('x,y\r\n1,2\r\n3"4,5\r\n6,"7"\r\n', size)).toMatch(/Invalid Opening Quote: .* at line 3,/);
  }
  expect(error('\n\nx,x\n1,2\n')).toBe("it:3: two columns are called 'x'. Give each its own name.");
});

test('bytes that are no UTF-8 are told by line and byte, and UTF-16 by its name', () => {
  const latin1 = Buffer.from('x,y\r\n1,2\r\n\r3,\xe9\n', 'latin1');
  for (const size of [1, 4, 11, 2 ** 20])
    expect(error(latin1, size)).toBe('it:4, byte 13: the text is not UTF-8.');
  const message =
    'it, byte 0: the text is UTF-16; expected UTF-8. Convert it, as by iconv -f UTF-16 -t UTF-8.';
  const little = Buffer.from('\uFEFFx,y\n1,2\n', 'utf16le');
  for (const bytes of [little, Buffer.from(little).swap16()])
    expect([bytes, bytes.subarray(2)].map((each) => error(each))).toEqual([message, message]);
});
