/** @file RandAugment (Cubuk et al., "RandAugment: Practical automated data augmentation", 2019). */
import { z } from 'zod';
import type { ExampleDraws } from '../../seqio/exampleDraws.js';
import type { RawImage } from '../rawImage.js';
import { BaseAugmentation } from './baseAugmentation.js';
import { fillField } from './crops.js';
import {
  autoContrast,
  brightness,
  contrast,
  equalize,
  posterize,
  saturation,
  sharpness,
  solarize,
} from './imageFilters.js';
import { rotate, shearX, shearY, translate } from './imageTransforms.js';

/** The largest magnitude. */
const MAX_MAGNITUDE = 30;

/**
 * An operation at a strength from 0 to 1, the magnitude's share of the largest; `signed` is that or its negative, at
 * random.
 */
type Operation = (image: RawImage, by: { strength: number; signed: number; fill: number }) => RawImage;

/** Largest shift, as a share of the image: 150 of the 331 pixels that AutoAugment's images had. */
const MAX_SHIFT = 150 / 331;

/** The paper's operations, each stronger with the magnitude, in the ranges of torchvision. */
export const operations: Readonly<Record<string, Operation>> = {
  identity: (image) => image,
  shearX: (image, { signed, fill }) => shearX(image, 0.3 * signed, fill),
  shearY: (image, { signed, fill }) => shearY(image, 0.3 * signed, fill),
  translateX: (image, { signed, fill }) =>
    translate(image, Math.trunc(MAX_SHIFT * image.width * signed), 0, fill),
  translateY: (image, { signed, fill }) =>
    translate(image, 0, Math.trunc(MAX_SHIFT * image.height * signed), fill),
  rotate: (image, { signed, fill }) => rotate(image, 30 * signed, fill),
  brightness: (image, { signed }) => brightness(image, 1 + 0.9 * signed),
  color: (image, { signed }) => saturation(image, 1 + 0.9 * signed),
  contrast: (image, { signed }) => contrast(image, 1 + 0.9 * signed),
  sharpness: (image, { signed }) => sharpness(image, 1 + 0.9 * signed),
  posterize: (image, { strength }) => posterize(image, 8 - Math.round(4 * strength)),
  // torchvision's threshold starts at 255, which would invert white at magnitude 0.
  solarize: (image, { strength }) => solarize(image, 256 * (1 - strength)),
  autoContrast: (image) => autoContrast(image),
  equalize: (image) => equalize(image),
};

const all = Object.values(operations);

/**
 * `numOps` of the paper's fourteen operations, drawn with replacement, all at one magnitude: identity, shear, translate
 * (each along x and y), rotate, brightness, colour, contrast, sharpness, posterize, solarize, autoContrast, equalize.
 * At magnitude 0 all leave the image as it is, but for autoContrast and equalize, which have no magnitude.
 */
export class RandAugment extends BaseAugmentation.with({
  numOps: z.int().min(0).default(2).describe("Operations on an image, the paper's N."),
  magnitude: z
    .number()
    .min(0)
    .max(MAX_MAGNITUDE)
    .default(9)
    .describe(`Their strength, the paper's M: 0 to ${MAX_MAGNITUDE}.`),
  fill: fillField(128),
}) {
  override apply(image: RawImage, draws: ExampleDraws): RawImage {
    const { numOps, magnitude, fill } = this.hp;
    const strength = magnitude / MAX_MAGNITUDE;
    let now = image;
    for (let i = 0; i < numOps; i++) {
      const operation = all[draws.below(all.length)]!;
      now = operation(now, { strength, signed: draws.below(2) === 0 ? strength : -strength, fill });
    }
    return now;
  }
}
