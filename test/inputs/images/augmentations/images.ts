/** @file Random images. */
import fc from 'fast-check';
import type { RawImage } from '../../../../src/inputs/images/rawImage.js';

/** Images of 1 to 9 pixels a side, grey and in colour. */
export const images: fc.Arbitrary<RawImage> = fc
  .record({
    height: fc.integer({ min: 1, max: 9 }),
    width: fc.integer({ min: 1, max: 9 }),
    channels: fc.constantFrom(1 as const, 3 as const),
  })
  .chain(({ height, width, channels }) => {
    const size = height * width * channels;
    return fc
      .uint8Array({ minLength: size, maxLength: size })
      .map((data): RawImage => ({ height, width, channels, data }));
  });
