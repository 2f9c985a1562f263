/** @file Images before and after the operations that Pillow has too. */
import { writeFileSync } from 'node:fs';
import { prngKey, randomBits } from '../../src/compiler/random/prng.js';
import {
  autoContrast,
  brightness,
  contrast,
  equalize,
  hue,
  posterize,
  saturation,
  sharpness,
  solarize,
} from '../../src/inputs/images/augmentations/imageFilters.js';
import { rotate, shearX, shearY } from '../../src/inputs/images/augmentations/imageTransforms.js';
import { type RawImage, withChannels } from '../../src/inputs/images/rawImage.js';

/** A noisy image, darker to the left. */
function imageOf(height: number, width: number, channels: 1 | 3, seed: number): RawImage {
  const bits = randomBits(prngKey(seed), height * width * channels);
  const data = Uint8Array.from(
    bits,
    (word, i) => 40 + ((Math.floor(i / channels) % width) * 3 + (word % 97)),
  );
  return { height, width, channels, data };
}

/** Operations by name, with the number that Pillow gets. */
const operations: readonly (readonly [name: string, by: number, apply: (image: RawImage) => RawImage])[] = [
  ...[0, 0.1, 0.73, 1, 1.9].flatMap((by) =>
    Object.entries({ brightness, contrast, saturation, sharpness }).map(
      ([name, filter]) => [name, by, (image: RawImage) => filter(image, by)] as const,
    ),
  ),
  ...[0.1, -0.35, 0.5].map((by) => ['hue', by, (image: RawImage) => hue(image, by)] as const),
  ...[4, 6, 8].map((by) => ['posterize', by, (image: RawImage) => posterize(image, by)] as const),
  ...[0, 100, 256].map((by) => ['solarize', by, (image: RawImage) => solarize(image, by)] as const),
  ['autoContrast', 0, autoContrast],
  ['equalize', 0, equalize],
  ['grey', 0, (image) => withChannels(image, 1)],
  ...[-0.3, 0.13].flatMap((by) =>
    Object.entries({ shearX, shearY }).map(
      ([name, shear]) => [name, by, (image: RawImage) => shear(image, by, 7)] as const,
    ),
  ),
  ...[-30, 3, 17.5].map((by) => ['rotate', by, (image: RawImage) => rotate(image, by, 7)] as const),
];

/** Writes them as JSON. */
export function writeImageSamples(path: string): void {
  const images = [imageOf(23, 31, 3, 1), imageOf(40, 40, 3, 2), imageOf(17, 29, 1, 3)];
  const samples = images.flatMap((image) =>
    operations.map(([name, by, apply]) => ({
      ...{ name, by, before: plain(image), after: plain(apply(image)) },
    })),
  );
  writeFileSync(path, JSON.stringify(samples));
}

const plain = (image: RawImage) => ({ ...image, data: [...image.data] });
