/** @file Random crops, mirror images and erased boxes, as torchvision's transforms of these names. */
import { z } from 'zod';
import type { ExampleDraws } from '../../seqio/exampleDraws.js';
import { type Box, crop, type ImageSize, type RawImage, resize } from '../rawImage.js';
import { BaseAugmentation } from './baseAugmentation.js';
import { cropBeyond, flipped } from './imageTransforms.js';

/** A smallest and a largest number, both positive. */
const range = (max: number) =>
  z
    .tuple([z.number().positive().max(max), z.number().positive().max(max)])
    .refine(([low, high]) => low <= high, { error: 'expected [smallest, largest]' });

/** Brightness outside of the image. */
export const fillField = (value: number) =>
  z.int().min(0).max(255).default(value).describe('Value of all channels outside the image, 0 to 255.');

const probabilityField = z.number().min(0).max(1).default(0.5).describe('Share of the images.');

/** Attempts to draw a box that lies within an image. */
const TRIES = 10;

interface BoxFields {
  readonly scale: readonly [number, number];
  readonly ratio: readonly [number, number];
}

/**
 * A box of a random share of the image's area, and a random ratio of width to height, uniform in its logarithm;
 * undefined where none of ten fits.
 */
function randomBox(
  { height, width }: ImageSize,
  { scale, ratio }: BoxFields,
  draws: ExampleDraws,
): Box | undefined {
  const between = (low: number, high: number): number => low + (high - low) * draws.uniform();
  for (let i = 0; i < TRIES; i++) {
    const area = height * width * between(...scale);
    const aspect = Math.exp(between(Math.log(ratio[0]), Math.log(ratio[1])));
    const [columns, rows] = [Math.round(Math.sqrt(area * aspect)), Math.round(Math.sqrt(area / aspect))];
    if (columns < 1 || columns > width || rows < 1 || rows > height) continue;
    const [top, left] = [draws.below(height - rows + 1), draws.below(width - columns + 1)];
    return { top, left, height: rows, width: columns };
  }
  return undefined;
}

/** The largest box in the middle whose ratio of width to height is within the range. */
function middleBox({ height, width }: ImageSize, [low, high]: readonly [number, number]): Box {
  const rows = Math.min(height, Math.max(1, Math.round(width / low)));
  const columns = Math.min(width, Math.max(1, Math.round(height * high)));
  return { top: (height - rows) >> 1, left: (width - columns) >> 1, height: rows, width: columns };
}

/**
 * A random part of the stored image, scaled to the batch's size: the crop of Inception and of ImageNet training. It
 * comes first, in place of `fit`.
 */
export class RandomResizedCrop extends BaseAugmentation.with({
  scale: range(1).default([0.08, 1]).describe("Smallest and largest share of the image's area."),
  ratio: range(100)
    .default([3 / 4, 4 / 3])
    .describe('Smallest and largest ratio of width to height.'),
}) {
  override get fitsToBatch(): boolean {
    return true;
  }

  override apply(image: RawImage, draws: ExampleDraws, size: ImageSize): RawImage {
    const box = randomBox(image, this.hp, draws) ?? middleBox(image, this.hp.ratio);
    return resize(crop(image, box), size.height, size.width);
  }
}

/** Pads the image on all sides and takes a random part of its own size, as CIFAR training does. */
export class RandomCrop extends BaseAugmentation.with({
  padding: z.int().min(0).describe('Pixels on each side.'),
  paddingMode: z
    .enum(['constant', 'edge', 'reflect'])
    .default('constant')
    .describe('Values beyond the border: `fill`, the edge pixel, or the mirror image.'),
  fill: fillField(0),
}) {
  override apply(image: RawImage, draws: ExampleDraws): RawImage {
    const { padding, paddingMode, fill } = this.hp;
    const [top, left] = [draws.below(2 * padding + 1) - padding, draws.below(2 * padding + 1) - padding];
    return cropBeyond(image, { ...image, top, left }, paddingMode, fill);
  }
}

/** The mirror image, left to right. */
export class RandomHorizontalFlip extends BaseAugmentation.with({ probability: probabilityField }) {
  override apply(image: RawImage, draws: ExampleDraws): RawImage {
    return draws.uniform() < this.hp.probability ? flipped(image) : image;
  }
}

/** Replaces a random box by one value, or by random values (Zhong et al., "Random erasing data augmentation", 2017). */
export class RandomErasing extends BaseAugmentation.with({
  probability: probabilityField,
  scale: range(1).default([0.02, 0.33]).describe("Smallest and largest share of the image's area."),
  ratio: range(100).default([0.3, 3.3]).describe('Smallest and largest ratio of width to height.'),
  value: z
    .union([z.int().min(0).max(255), z.literal('random')])
    .default(0)
    .describe("Value of the box: 0 to 255, or 'random', uniform for each pixel."),
}) {
  override apply(image: RawImage, draws: ExampleDraws): RawImage {
    const { probability, value } = this.hp;
    const box = draws.uniform() < probability ? randomBox(image, this.hp, draws) : undefined;
    if (box === undefined) return image;
    const data = Uint8Array.from(image.data);
    for (let y = box.top; y < box.top + box.height; y++) {
      const start = (y * image.width + box.left) * image.channels;
      const row = data.subarray(start, start + box.width * image.channels);
      for (let i = 0; i < row.length; i++) row[i] = value === 'random' ? draws.below(256) : value;
    }
    return { ...image, data };
  }
}
