/** @file Image files: PNG of every depth and colour, JPEG of every way to store colours, other kinds, cut and foreign ones. */
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { encode } from 'fast-png';
import { imageDecoder } from '../../../src/inputs/images/imageDecoder.js';
import { withChannels } from '../../../src/inputs/images/rawImage.js';
import recorded from '../../fixtures/jpegs/jpegs.json' with { type: 'json' };
import type { OddFile, OddKind } from './oddFile.js';

const decode = imageDecoder(2 ** 20);
const read = ([path]: readonly string[]) => {
  const { height, width, channels, data } = decode(readFileSync(path!));
  return { height, width, channels, data: [...data] };
};

const bytes = fc.uint8Array({ minLength: 4 * 6 * 6 * 2, maxLength: 4 * 6 * 6 * 2 });

const png = fc
  .record({
    height: fc.integer({ min: 1, max: 6 }),
    width: fc.integer({ min: 1, max: 6 }),
    channels: fc.integer({ min: 1, max: 4 }),
    depth: fc.constantFrom(8 as const, 16 as const),
    bytes,
    cut: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
  })
  .map(({ height, width, channels, depth, bytes, cut }): OddFile => {
    const size = height * width * channels;
    const samples = depth === 8 ? bytes.slice(0, size) : new Uint16Array(bytes.buffer.slice(0, 2 * size));
    const whole = encode({ height, width, channels, depth, data: samples });
    // Colours are 8 bits, and alpha is left out.
    const kept = channels < 3 ? 1 : 3;
    const data = [...samples]
      .filter((_, i) => i % channels < kept)
      .map((sample) => (depth === 8 ? sample : sample >> 8));
    // The last chunk has no data of the image.
    const end = cut === null ? whole.length : 8 + Math.floor(cut * (whole.length - 21));
    return {
      files: { 'a.png': whole.slice(0, end) },
      read,
      truth:
        cut === null
          ? { values: { height, width, channels: kept, data } }
          : { refused: /^is a damaged PNG image: / },
    };
  });

const jpeg = fc.constantFrom(...Object.values(recorded.files)).map(({ bytes, pixels }): OddFile => {
  const wanted = Buffer.from(pixels, 'base64');
  return {
    files: { 'a.jpg': Buffer.from(bytes, 'base64') },
    read: ([path]) => {
      const { height, width, data } = withChannels(decode(readFileSync(path!)), 3);
      // Decoders round cosines as they like.
      return { height, width, isNear: wanted.every((value, i) => Math.abs(value - data[i]!) <= 4) };
    },
    truth: { values: { height: 8, width: 16, isNear: true } },
  };
});

const starts = {
  WebP: 'RIFF\x10\0\0\0WEBPVP8 ',
  GIF: 'GIF89a',
  TIFF: 'MM\0*',
  AVIF: '\0\0\0\x1cftypavif',
  HEIF: '\0\0\0\x1cftypheic',
};

const foreign = fc
  .tuple(
    fc.constantFrom(...(Object.keys(starts) as (keyof typeof starts)[])),
    fc.uint8Array({ maxLength: 40 }),
  )
  .map(
    ([kind, rest]): OddFile => ({
      files: { 'a.jpg': Buffer.concat([Buffer.from(starts[kind], 'latin1'), rest]) },
      read,
      truth: { refused: `is a ${kind} image: expected PNG or JPEG. Convert it.` },
    }),
  );

const text = fc.string({ unit: fc.constantFrom(...'abc \n'), maxLength: 20 }).map(
  (contents): OddFile => ({
    files: { 'a.png': contents },
    read,
    truth: { refused: 'is neither a PNG nor a JPEG image' },
  }),
);

export const pictures: OddKind = {
  name: 'kinds of images',
  cases: fc.oneof({ weight: 4, arbitrary: png }, jpeg, foreign, text),
  tries: 3000,
  short: 200,
};
