/** @file PNG images: depths, filters, interlacing and palettes; and files that say more than their bytes hold. */
import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { decode as fastPng } from 'fast-png';
import { expect, test } from 'vitest';
import { decodePng } from '../../../src/inputs/images/pngImage.js';
import { chunk, header, pngOf, pngOfRows } from './pngFiles.js';

const MOST = 2 ** 20;
const read = (bytes: Uint8Array) => {
  const { channels, data } = decodePng(bytes, MOST);
  return [channels, ...data];
};

test('grey of less than a byte fills the range, in rows that end within a byte', () => {
  const rows = (...bytes: number[]) => Uint8Array.from(bytes);
  expect(read(pngOfRows({ width: 3, height: 2, depth: 1 }, rows(0, 0b10100000, 0, 0b01000000)))).toEqual([
    ...[1, 255, 0, 255],
    ...[0, 255, 0],
  ]);
  expect(read(pngOfRows({ width: 3, height: 1, depth: 2 }, rows(0, 0b00011000)))).toEqual([1, 0, 85, 170]);
  expect(read(pngOfRows({ width: 3, height: 1, depth: 4 }, rows(0, 0x0f, 0x10)))).toEqual([1, 0, 255, 17]);
});

test('rows by each filter are what another reader makes of them', () => {
  const cases = fc.record({
    width: fc.integer({ min: 1, max: 9 }),
    height: fc.integer({ min: 1, max: 9 }),
    kind: fc.constantFrom([0, 1], [2, 3], [4, 2], [6, 4]),
    depth: fc.constantFrom(8, 16),
    interlace: fc.constantFrom(0, 1),
    filters: fc.infiniteStream(fc.nat(4)),
    bytes: fc.infiniteStream(fc.nat(255)),
  });
  fc.assert(
    fc.property(cases, ({ width, height, kind: [color, samples], depth, interlace, filters, bytes }) => {
      const some = (count: number) => [...bytes.take(count)];
      const size = (columns: number) => (columns * samples! * depth) / 8;
      const steps = [
        [0, 0, 8, 8],
        [4, 0, 8, 8],
        [0, 4, 4, 8],
        [2, 0, 4, 4],
        [0, 2, 2, 4],
        [1, 0, 2, 2],
        [0, 1, 1, 2],
      ];
      const passes = (interlace === 1 ? steps : [[0, 0, 1, 1]]) as [number, number, number, number][];
      const rows = passes.flatMap(([x, y, dx, dy]) => {
        const [columns, lines] = [Math.ceil((width - x) / dx), Math.ceil((height - y) / dy)];
        if (columns <= 0 || lines <= 0) return [];
        return Array.from({ length: lines }, () => [...filters.take(1), ...some(size(columns))]).flat();
      });
      const file = pngOfRows({ width, height, depth, color: color!, interlace }, Uint8Array.from(rows));
      const kept = samples! < 3 ? 1 : 3;
      const theirs = [...fastPng(file).data]
        .filter((_, i) => i % samples! < kept)
        .map((value) => (depth === 16 ? value >> 8 : value));
      expect(read(file)).toEqual([kept, ...theirs]);
    }),
  );
});

test('interlaced images of less than a byte a pixel', () => {
  // Of 3 × 3 pixels, passes 1, 4, 5, 6 and 7 have any: (0, 0); (2, 0); (0, 2), (2, 2); (1, 0), (1, 2); and row 1.
  const rows = [
    [0, 0x80],
    [0, 0x80],
    [0, 0x40],
    [0, 0x80],
    [0, 0],
    [0, 0b01000000],
  ].flat();
  const file = pngOfRows({ width: 3, height: 3, depth: 1, interlace: 1 }, Uint8Array.from(rows));
  expect(read(file)).toEqual([1, 255, 255, 255, 0, 255, 0, 0, 0, 255]);
});

test('a palette belongs to images of indices; that of a colour image is a hint', () => {
  const palette = chunk('PLTE', Uint8Array.of(1, 2, 3, 4, 5, 6));
  const indexed = { width: 2, height: 1, color: 3 };
  expect(read(pngOfRows({ ...indexed, depth: 1 }, Uint8Array.of(0, 0x40), [palette]))).toEqual([
    ...[3, 1, 2, 3],
    ...[4, 5, 6],
  ]);
  const colors = Uint8Array.of(0, 9, 8, 7, 6, 5, 4);
  expect(read(pngOfRows({ width: 2, height: 1, color: 2 }, colors, [palette]))).toEqual([
    3, 9, 8, 7, 6, 5, 4,
  ]);
});

const image = { width: 2, height: 2 };
const rows = Uint8Array.of(0, 1, 2, 0, 3, 4);
const whole = pngOfRows(image, rows);
const changed = (at: number, value: number): Buffer => {
  const bytes = Buffer.from(whole);
  bytes[at] = value;
  return bytes;
};
/** Zeros in a thousandth of their bytes. */
const bomb = (size: number) => deflateSync(new Uint8Array(size));

test.each<[string, Uint8Array, string]>([
  [
    'that is too large',
    pngOfRows({ width: 30_000, height: 30_000 }, rows),
    'is a PNG image of 30000 × 30000 pixels, 859 megapixels: maxMegapixels allows 1. Make it smaller, or raise maxMegapixels if you trust the file',
  ],
  ['without pixels', pngOfRows({ width: 0, height: 0 }, rows), 'is a damaged PNG image: it has 0 × 0 pixels'],
  [
    'with less data than pixels',
    pngOfRows({ width: 1000, height: 1000 }, rows),
    'is a damaged PNG image: it has too little data for 1000 × 1000 pixels',
  ],
  [
    'with a row less',
    pngOfRows({ width: 2, height: 3 }, rows),
    'is a damaged PNG image: it has too little data for 2 × 3 pixels',
  ],
  [
    'whose data is a bomb',
    pngOf(header(image), chunk('IDAT', bomb(2 ** 22)), chunk('IEND')),
    'is a damaged PNG image: it has too much data for 2 × 2 pixels',
  ],
  [
    'without a palette',
    pngOfRows({ ...image, color: 3 }, rows),
    'is a damaged PNG image: its palette is missing',
  ],
  [
    'with colours that its palette lacks',
    pngOfRows({ ...image, color: 3 }, rows, [chunk('PLTE', Uint8Array.of(1, 2, 3))]),
    'is a damaged PNG image: a pixel has colour 1 of a palette of 1',
  ],
  [
    'with a palette that is cut',
    pngOfRows({ ...image, color: 3 }, rows, [chunk('PLTE', Uint8Array.of(1, 2))]),
    'is a damaged PNG image: its palette has 2 bytes',
  ],
  [
    'of no colour type',
    pngOfRows({ ...image, color: 2, depth: 4 }, rows),
    'is a damaged PNG image: there is no colour type 2 of 4 bits',
  ],
  [
    'of no interlacing',
    pngOfRows({ ...image, interlace: 2 }, rows),
    'is a damaged PNG image: there is no compression 0, filter 0, interlacing 2',
  ],
  [
    'with an unknown filter',
    pngOfRows(image, Uint8Array.of(0, 1, 2, 9, 3, 4)),
    'is a damaged PNG image: there is no filter 9',
  ],
  [
    'whose chunk has the length of all',
    changed(33, 0xff),
    `is a damaged PNG image: chunk IDAT at byte 33 of 4278190094 bytes is cut off at ${whole.length}`,
  ],
  [
    'with a bit changed',
    changed(20, 3),
    'is a damaged PNG image: the checksum of chunk IHDR at byte 8 is wrong',
  ],
  [
    'whose data is none',
    pngOf(header(image), chunk('IDAT', Uint8Array.of(1, 2, 3, 4)), chunk('IEND')),
    'is a damaged PNG image: its data cannot be decompressed: incorrect header check',
  ],
  [
    'without an end',
    whole.subarray(0, -12),
    `is a damaged PNG image: it is cut off at byte ${whole.length - 12}`,
  ],
  ['with two headers', pngOf(header(image), header(image)), 'is a damaged PNG image: it has two headers'],
  ['without a header', pngOf(chunk('IDAT')), 'is a damaged PNG image: it does not begin with a header'],
  [
    'with a short header',
    pngOf(chunk('IHDR', new Uint8Array(5))),
    'is a damaged PNG image: its header has 5 bytes, not 13',
  ],
])('a file %s is refused', (_, bytes, message) => {
  expect(() => decodePng(bytes, MOST)).toThrow(expect.objectContaining({ name: 'InputError', message }));
});

test('a colour profile and compressed texts are not looked into', () => {
  const profile = chunk('iCCP', Buffer.from('p\0\0no zlib stream'));
  const text = chunk('zTXt', Buffer.from('t\0\0no zlib stream'));
  expect(read(pngOfRows(image, rows, [profile, text]))).toEqual([1, 1, 2, 3, 4]);
});
