/** @file Pixels of images as models take them: of one size and its colours, standardised. */
import { z } from 'zod';
import { InputError } from '../inputErrors.js';
import { centerCrop, crop, type RawImage, resize, withChannels } from './rawImage.js';

/** Numbers of the channels. */
const perChannel = z.array(z.number()).min(1).max(3).nullable().default(null);

/** Fields of what reads images. */
export const pixelFields = {
  height: z.int().positive().describe('Rows of pixels.'),
  width: z.int().positive().describe('Columns of pixels.'),
  channels: z
    .union([z.literal(1), z.literal(3)])
    .default(3)
    .describe('1: grey; 3: red, green and blue.'),
  fit: z
    .enum(['crop', 'resizeAndCrop', 'stretch'])
    .default('crop')
    .describe(
      'How an image of another aspect ratio is fitted: cropped at its centre, the same once its shorter side has its size, ' +
        'as by processors of CLIP, or stretched.',
    ),
  filter: z
    .enum(['bilinear', 'bicubic'])
    .default('bilinear')
    .describe('How pixels are weighted where an image is resized, as with Pillow.'),
  mean: perChannel.describe('Mean of each channel, from 0 to 1, to subtract; null is 0.'),
  std: perChannel.describe('Standard deviation of each channel, to divide by; null is 1.'),
};

export const maxMegapixels = z
  .number()
  .positive()
  .default(64)
  .describe('Size of the largest file that is decoded, in 1,048,576 pixels; a larger one is an error.');

type PixelSettings = { readonly [name in keyof typeof pixelFields]: z.output<(typeof pixelFields)[name]> };

/** Makes numbers of images, by the settings of `pixelFields`. */
export class Pixels {
  /** float32 numbers of the bytes of each channel. */
  readonly #levels: readonly Float32Array[];

  /** @throws InputError for settings that do not fit one another */
  constructor(private readonly settings: PixelSettings) {
    const { channels, mean, std } = settings;
    for (const [name, values] of Object.entries({ mean, std }))
      if (values !== null && values.length !== channels)
        throw new InputError(
          `expected as many numbers in ${name} as channels, ${channels}; got ${values.length}.`,
        );
    if (std?.some((value) => value <= 0))
      throw new InputError(`expected std above 0, got [${std.join(', ')}].`);
    this.#levels = Array.from({ length: channels }, (_, c) =>
      Float32Array.from({ length: 256 }, (_, value) => (value / 255 - (mean?.[c] ?? 0)) / (std?.[c] ?? 1)),
    );
  }

  /** An image in the colours and the size of a batch. */
  fitted(stored: RawImage): RawImage {
    const { height, width, channels, fit, filter } = this.settings;
    const image = withChannels(stored, channels);
    if (fit !== 'resizeAndCrop')
      return resize(fit === 'crop' ? centerCrop(image, height, width) : image, height, width, filter);
    const scale = Math.max(height / image.height, width / image.width);
    // Rounded down, as transformers does; the side that determines the scale has its size.
    const [rows, columns] = [
      Math.max(height, Math.floor(image.height * scale)),
      Math.max(width, Math.floor(image.width * scale)),
    ];
    const [top, left] = [(rows - height) >> 1, (columns - width) >> 1];
    return crop(resize(image, rows, columns, filter), { top, left, height, width });
  }

  /** Bytes as standardised numbers. */
  numbersOf({ data }: RawImage): Float32Array {
    const { channels } = this.settings;
    return Float32Array.from(data, (value, i) => this.#levels[i % channels]![value]!);
  }
}
