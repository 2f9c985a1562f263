/** @file Texts in other encodings than UTF-8, and in broken UTF-8. */
import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { CsvSource, JsonLinesSource, TextFileSource, TextLinesSource } from '../../../src/inputs/index.js';
import { type OddKind, recordsOf, type Truth } from './oddFile.js';

/** Line `n` of each format holds a text, from the first line with records on. */
const formats = {
  csv: {
    bytesOf: (lines: readonly string[]) => `xy\n${lines.map((text) => `${text}\n`).join('')}`,
    read: (files: string[]) => recordsOf(CsvSource.config({ files })).map(({ xy }) => xy),
  },
  txt: {
    bytesOf: (lines: readonly string[]) => lines.map((text) => `${text}\n`).join(''),
    read: (files: string[]) => recordsOf(TextLinesSource.config({ files })).map(({ text }) => text),
  },
  jsonl: {
    bytesOf: (lines: readonly string[]) => lines.map((text) => `{"x": "${text}"}\n`).join(''),
    read: (files: string[]) => recordsOf(JsonLinesSource.config({ files })).map(({ x }) => x),
  },
  whole: {
    bytesOf: (lines: readonly string[]) => lines.map((text) => `${text}\n`).join(''),
    read: (files: string[]) =>
      recordsOf(TextFileSource.config({ files })).flatMap(({ text }) =>
        String(text).split('\n').slice(0, -1),
      ),
  },
};

/** Bytes that are no character, whatever follows in a line. */
const broken = [
  [0x80],
  [0xc3],
  [0xc0, 0xaf],
  [0xe2, 0x82],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xff],
];

/** Bytes of a text that begins with characters of ASCII, by encoding. */
const bytesByEncoding = {
  'utf-8': (text: string) => Buffer.from(text),
  'utf-8 with a mark': (text: string) => Buffer.from(`\uFEFF${text}`),
  'utf-16le': (text: string) => Buffer.from(text, 'utf16le'),
  'utf-16le with a mark': (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le'),
  'utf-16be': (text: string) => Buffer.from(text, 'utf16le').swap16(),
  'utf-16be with a mark': (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le').swap16(),
  // The characters that it has.
  'latin-1': (text: string) => Buffer.from(text.replaceAll(/[€𝄞]/gu, 'é'), 'latin1'),
};

const UTF16 = 'FILE, byte 0: the text is UTF-16; expected UTF-8. Convert it, as by iconv -f UTF-16 -t UTF-8.';

/** Line and byte of the first character that cannot be decoded, found by decoding ever longer parts. */
function firstBroken(bytes: Buffer): { readonly line: number; readonly byte: number } {
  const lines = bytes.toString('latin1').split('\n');
  let byte = 0;
  for (const [n, line] of lines.entries()) {
    const part = Buffer.from(line, 'latin1');
    if (isUtf8(part)) byte += part.length + 1;
    else {
      const valid = new TextDecoder().decode(part).split('\uFFFD')[0]!;
      return { line: n + 1, byte: byte + Buffer.byteLength(valid) };
    }
  }
  throw new Error('all of it is UTF-8');
}

const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é', 'ü', '€', '𝄞'), maxLength: 8 });

export const encodings: OddKind = {
  name: 'encodings of CSV, text and JSON Lines',
  cases: fc
    .record({
      format: fc.constantFrom(...(Object.keys(formats) as (keyof typeof formats)[])),
      encoding: fc.constantFrom(...(Object.keys(bytesByEncoding) as (keyof typeof bytesByEncoding)[])),
      lines: fc.array(
        text.map((rest) => `ab${rest}`),
        { minLength: 1, maxLength: 6 },
      ),
      damage: fc.option(fc.record({ line: fc.nat(), bytes: fc.constantFrom(...broken) })),
    })
    .map(({ format, encoding, lines, damage }) => {
      const { bytesOf, read } = formats[format];
      let bytes = bytesByEncoding[encoding](bytesOf(lines));
      if (encoding === 'utf-8' && damage !== null) {
        // In a text, behind its 'ab'.
        const places = [...bytes.toString('latin1').matchAll(/ab/g)].map(({ index }) => index + 2);
        const at = places[damage.line % places.length]!;
        bytes = Buffer.concat([bytes.subarray(0, at), Buffer.from(damage.bytes), bytes.subarray(at)]);
      }
      let truth: Truth;
      if (encoding.startsWith('utf-16')) truth = { refused: UTF16 };
      else if (isUtf8(bytes)) {
        truth = { values: lines };
      } else {
        const { line, byte } = firstBroken(bytes);
        const place = format === 'whole' ? 'FILE' : `FILE:${line}`;
        truth = { refused: `${place}, byte ${byte}: the text is not UTF-8.` };
      }
      return { files: { 'a.txt': bytes }, read: (paths) => read([...paths]), truth };
    }),
  tries: 3000,
  short: 150,
};
