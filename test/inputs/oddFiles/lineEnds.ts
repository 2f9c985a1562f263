/** @file Files whose line ends change, with blank lines, byte order marks, quotes, and rows at the borders of reading. */
import fc from 'fast-check';
import { CsvSource, JsonLinesSource, TextLinesSource } from '../../../src/inputs/index.js';
import { type OddFile, type OddKind, recordsOf } from './oddFile.js';

const mark = fc.constantFrom('', '\uFEFF');
const end = fc.constantFrom('\n', '\r\n', '\r', '\n\n', '\r\r', '\n\r', '\r\n\r\n');

/** A value, and how it may be written. */
const field = (delimiter: string) =>
  fc
    .tuple(
      fc.string({ unit: fc.constantFrom('a', 'é', '"', ',', ';', '\t', '\n', '\r', ' ', '0'), maxLength: 5 }),
      fc.boolean(),
    )
    .map(([value, isQuoted]) => {
      const mustQuote = value === '' || /["\r\n]/.test(value) || value.includes(delimiter);
      return { value, text: isQuoted || mustQuote ? `"${value.replaceAll('"', '""')}"` : value };
    });

/** Bytes that are read at once; a first row of about as many puts the others at the border. */
const CHUNK = 2 ** 20;
const padding = fc.oneof(
  { weight: 20, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.integer({ min: CHUNK - 40, max: CHUNK }) },
);

const csv: fc.Arbitrary<OddFile> = fc.constantFrom(',', ';', '\t').chain((delimiter) =>
  fc
    .tuple(
      mark,
      fc.array(fc.tuple(field(delimiter), field(delimiter), end), { minLength: 1, maxLength: 12 }),
      fc.record({ hasHeader: fc.boolean(), isEnded: fc.boolean(), headerEnd: end, padding }),
    )
    .map(([start, rows, { hasHeader, isEnded, headerEnd, padding }]) => {
      const long = 'p'.repeat(padding);
      const all = padding === 0 ? rows : [[{ value: long, text: long }, rows[0]![1], '\n'] as const, ...rows];
      const texts = all.map(([x, y, rowEnd], r) => {
        const isLast = r === all.length - 1;
        return `${x.text}${delimiter}${y.text}${isLast && !isEnded ? '' : rowEnd}`;
      });
      const header = hasHeader ? `x${delimiter}y${headerEnd}` : '';
      return {
        files: { 'a.csv': `${start}${header}${texts.join('')}` },
        read: (files) =>
          recordsOf(
            CsvSource.config({ files: [...files], delimiter, columns: hasHeader ? null : ['x', 'y'] }),
          ),
        truth: { values: all.map(([x, y]) => ({ x: x.value, y: y.value })) },
      };
    }),
);

const lineEnd = fc.constantFrom('\n', '\r\n');

const textLines: fc.Arbitrary<OddFile> = fc
  .tuple(
    mark,
    fc.array(
      // A return within a line is text.
      fc.tuple(fc.string({ unit: fc.constantFrom('a', 'é', '\r', ' ', '"'), maxLength: 5 }), lineEnd),
      { maxLength: 12 },
    ),
  )
  .map(([start, lines]) => ({
    files: { 'a.txt': `${start}${lines.map(([text, end]) => `${text}${end}`).join('')}` },
    read: (files) => recordsOf(TextLinesSource.config({ files: [...files] })),
    truth: {
      values: lines.map(([text, end]) => ({ text: end === '\n' ? text.replace(/\r$/, '') : text })),
    },
  }));

const jsonLines: fc.Arbitrary<OddFile> = fc
  .tuple(
    mark,
    fc.array(fc.tuple(fc.string({ unit: fc.constantFrom('a', 'é', '\r', '\n', '"') }), end), {
      maxLength: 12,
    }),
  )
  .map(([start, rows]) => {
    // Returns alone are white space of JSON, so that two objects stand in one line.
    const lines = rows.map(([x, end]) => [JSON.stringify({ x }), end.includes('\n') ? end : '\n']);
    return {
      files: { 'a.jsonl': `${start}${lines.flat().join('')}` },
      read: (files) => recordsOf(JsonLinesSource.config({ files: [...files] })),
      truth: { values: rows.map(([x]) => ({ x })) },
    };
  });

export const lineEnds: OddKind = {
  name: 'line ends of CSV, text and JSON Lines',
  cases: fc.oneof({ weight: 3, arbitrary: csv }, textLines, jsonLines),
  tries: 5000,
  short: 200,
};
