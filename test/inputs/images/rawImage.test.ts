/** @file Decoding of every kind of PNG, and resizing and cropping of images against plain formulas. */

import fc from 'fast-check';
import { encode } from 'fast-png';
import { expect, test } from 'vitest';
import { imageDecoder } from '../../../src/inputs/images/imageDecoder.js';
import { centerCrop, resize, withChannels } from '../../../src/inputs/images/rawImage.js';
import recorded from '../../fixtures/jpegs/jpegs.json' with { type: 'json' };
import { images } from './augmentations/images.js';

const decode = imageDecoder(2 ** 20);

test('PNG: of 8 and 16 bits, with alpha, with a palette, and of less than a byte a pixel', () => {
  const decoded = (image: Parameters<typeof encode>[0]) => {
    const { channels, data } = decode(encode(image));
    return [channels, ...data];
  };
  const two = { height: 1, width: 2 };
  expect(decoded({ ...two, channels: 1, data: Uint8Array.of(1, 2) })).toEqual([1, 1, 2]);
  expect(decoded({ ...two, channels: 2, data: Uint8Array.of(1, 9, 2, 9) })).toEqual([1, 1, 2]);
  expect(decoded({ ...two, channels: 4, data: Uint8Array.of(1, 2, 3, 0, 4, 5, 6, 255) })).toEqual([
    3, 1, 2, 3, 4, 5, 6,
  ]);
  expect(decoded({ ...two, channels: 1, depth: 16, data: Uint16Array.of(0x1234, 0xffff) })).toEqual([
    1, 0x12, 255,
  ]);
  const palette = [
    [1, 2, 3],
    [4, 5, 6],
  ];
  expect(decoded({ ...two, channels: 1, depth: 8, palette, data: Uint8Array.of(1, 0) })).toEqual([
    3, 4, 5, 6, 1, 2, 3,
  ]);
});

test('resizing: exact where the size stays, bilinear in between, the mean where it shrinks to a pixel', () => {
  fc.assert(
    fc.property(images, (image) => {
      expect(resize(image, image.height, image.width)).toEqual(image);
      const grown = resize(image, 2 * image.height, image.width);
      const at = (y: number, i: number) =>
        image.data[Math.min(Math.max(y, 0), image.height - 1) * image.width * image.channels + i]!;
      // Rows 2y and 2y + 1 lie a quarter above and below the middle of row y.
      const size = image.width * image.channels;
      for (let y = 0; y < image.height; y++) {
        for (let i = 0; i < size; i++) {
          expect(
            Math.abs(grown.data[2 * y * size + i]! - (0.75 * at(y, i) + 0.25 * at(y - 1, i))),
          ).toBeLessThanOrEqual(0.5);
          expect(
            Math.abs(grown.data[(2 * y + 1) * size + i]! - (0.75 * at(y, i) + 0.25 * at(y + 1, i))),
          ).toBeLessThanOrEqual(0.5);
        }
      }
    }),
  );
  const plain = { height: 40, width: 30, channels: 3 as const, data: new Uint8Array(3600).fill(77) };
  expect(resize(plain, 7, 11)).toEqual({
    height: 7,
    width: 11,
    channels: 3,
    data: new Uint8Array(231).fill(77),
  });
  // A pattern finer than the result has pixels comes out as its mean, not as every n-th pixel.
  const stripes = {
    height: 1,
    width: 64,
    channels: 1 as const,
    data: Uint8Array.from({ length: 64 }, (_, i) => 200 * (i % 2)),
  };
  for (const value of resize(stripes, 1, 8).data) expect(Math.abs(value - 100)).toBeLessThanOrEqual(4);
});

test('cropping takes the middle; colours are kept, made grey, or repeated', () => {
  const image = { height: 2, width: 4, channels: 1 as const, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) };
  expect(centerCrop(image, 1, 1)).toEqual({
    height: 2,
    width: 2,
    channels: 1,
    data: Uint8Array.of(2, 3, 6, 7),
  });
  expect(centerCrop(image, 10, 20)).toEqual(image);
  expect(withChannels(centerCrop(image, 1, 1), 3).data).toEqual(
    Uint8Array.of(2, 2, 2, 3, 3, 3, 6, 6, 6, 7, 7, 7),
  );
  // A column in the ratio of a row keeps a pixel.
  expect(centerCrop({ height: 100, width: 1, channels: 1, data: new Uint8Array(100) }, 1, 10)).toMatchObject({
    height: 1,
    width: 1,
  });
  const color = { height: 1, width: 1, channels: 3 as const, data: Uint8Array.of(100, 150, 200) };
  expect(withChannels(color, 1).data).toEqual(Uint8Array.of(141));
});

test.each(Object.entries(recorded.files))(
  'JPEG, %s: the colours that libjpeg reads',
  (_, { bytes, pixels }) => {
    const image = withChannels(decode(Buffer.from(bytes, 'base64')), 3);
    const wanted = Buffer.from(pixels, 'base64');
    expect([image.width, image.height, image.data.length]).toEqual([16, 8, wanted.length]);
    const difference = image.data.reduce((most, value, i) => Math.max(most, Math.abs(value - wanted[i]!)), 0);
    // Decoders round cosines as they like.
    expect(difference).toBeLessThanOrEqual(4);
  },
);

test('images of other kinds are refused by name', () => {
  const starts = {
    WebP: 'RIFF\x10\0\0\0WEBPVP8 ',
    GIF: 'GIF89a',
    BMP: 'BM\x10\0\0\0\0\0\0\0',
    TIFF: 'II*\0',
    AVIF: '\0\0\0\x1cftypavif',
    HEIF: '\0\0\0\x1cftypheic',
    'JPEG XL': '\xff\x0a',
    'JPEG 2000': '\0\0\0\x0cjP  \r\n',
  };
  for (const [kind, start] of Object.entries(starts))
    expect(() => decode(Buffer.from(start, 'latin1'))).toThrow(
      `is a ${kind} image: expected PNG or JPEG. Convert it.`,
    );
  expect(() => decode(Buffer.from('text'))).toThrow('is neither a PNG nor a JPEG image');
});
