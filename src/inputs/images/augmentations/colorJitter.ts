/** @file Random brightness, contrast, saturation and hue. */
import { z } from 'zod';
import type { ExampleDraws } from '../../seqio/exampleDraws.js';
import type { RawImage } from '../rawImage.js';
import { BaseAugmentation } from './baseAugmentation.js';
import { brightness, contrast, hue, saturation } from './imageFilters.js';

const strength = (what: string) =>
  z
    .number()
    .min(0)
    .default(0)
    .describe(`${what}: its factor is uniform between 1 − this (at least 0) and 1 + this.`);

/**
 * Changes brightness, contrast, saturation and hue in a random order, as torchvision's ColorJitter. Saturation and hue
 * leave grey images as they are.
 */
export class ColorJitter extends BaseAugmentation.with({
  brightness: strength('Brightness'),
  contrast: strength('Contrast'),
  saturation: strength('Saturation'),
  hue: z
    .number()
    .min(0)
    .max(0.5)
    .default(0)
    .describe('Hue: rotation by a fraction of the colour circle, uniform between −this and this.'),
}) {
  override apply(image: RawImage, draws: ExampleDraws): RawImage {
    const { hp } = this;
    const factor = (by: number): number => {
      const low = Math.max(0, 1 - by);
      return low + (1 + by - low) * draws.uniform();
    };
    const factors = [factor(hp.brightness), factor(hp.contrast), factor(hp.saturation)] as const;
    const turn = hp.hue * (2 * draws.uniform() - 1);
    const changes = [
      (now: RawImage) => brightness(now, factors[0]),
      (now: RawImage) => contrast(now, factors[1]),
      (now: RawImage) => saturation(now, factors[2]),
      (now: RawImage) => hue(now, turn),
    ];
    const order = [0, 1, 2, 3];
    draws.shuffle(order);
    return order.reduce((now, i) => changes[i]!(now), image);
  }
}
