/** @file PNG files are read back by an independent decoder. */
import { decode } from 'fast-png';
import { expect, test } from 'vitest';
import { encodePng } from '../../src/summaries/png.js';

test.each([1, 3, 4] as const)('%d channels', (channels) => {
  const [height, width] = [5, 3];
  const bytes = Uint8Array.from({ length: height * width * channels }, (_, i) => (i * 41) % 256);
  const png = encodePng(
    Array.from(bytes, (byte) => byte / 255),
    height,
    width,
    channels,
  );
  const { data, ...rest } = decode(png, { checkCrc: true });
  expect(rest).toMatchObject({ height, width, channels, depth: 8 });
  expect([...data]).toEqual([...bytes]);
});

test('values outside 0 to 1 are clipped, and NaN is black', () => {
  const png = encodePng([-1, 0.5, 7, Number.NaN], 1, 4, 1);
  expect([...decode(png).data]).toEqual([0, 128, 255, 0]);
});
