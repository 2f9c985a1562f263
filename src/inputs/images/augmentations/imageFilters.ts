/** @file Changes of an image's colours, as Pillow computes them in ImageEnhance, ImageOps and Image.blend. */
import { type RawImage, withChannels } from '../rawImage.js';

/** The image with each byte mapped by the table of its channel. */
function mapped(image: RawImage, tables: readonly Uint8ClampedArray[]): RawImage {
  const { channels } = image;
  return { ...image, data: image.data.map((value, i) => tables[i % channels]![value]!) };
}

/** A table of all bytes, rounded down. */
const tableOf = (map: (value: number) => number): Uint8ClampedArray =>
  Uint8ClampedArray.from({ length: 256 }, (_, value) => Math.trunc(map(value)));

/** The image with each byte mapped. */
const mappedAlike = (image: RawImage, map: (value: number) => number): RawImage =>
  mapped(image, Array(image.channels).fill(tableOf(map)));

/** `factor` of 0 gives `other`, 1 the image; above 1 it goes beyond. Rounded down, in float32. */
function blend(image: RawImage, other: (i: number) => number, factor: number): RawImage {
  const share = Math.fround(factor);
  const data = image.data.map((value, i) => {
    const start = other(i);
    const blended = Math.fround(start + Math.fround(share * (value - start)));
    return Math.min(255, Math.max(0, blended));
  });
  return { ...image, data };
}

/** Brightness by a factor; 0 is black. */
export const brightness = (image: RawImage, factor: number): RawImage => blend(image, () => 0, factor);

/** Contrast by a factor; 0 is the mean grey. */
export function contrast(image: RawImage, factor: number): RawImage {
  const { data } = withChannels(image, 1);
  const mean = Math.floor(data.reduce((sum, value) => sum + value, 0) / data.length + 0.5);
  return blend(image, () => mean, factor);
}

/** Saturation by a factor; 0 is grey. */
export function saturation(image: RawImage, factor: number): RawImage {
  const { data } = withChannels(image, 1);
  return blend(image, (i) => data[Math.floor(i / image.channels)]!, factor);
}

/** Sharpness by a factor; 0 is smoothed over 3 × 3 pixels, but for the border. */
export function sharpness(image: RawImage, factor: number): RawImage {
  const { height, width, channels, data } = image;
  const row = width * channels;
  const smooth = (i: number): number => {
    const [y, x] = [Math.floor(i / row), Math.floor((i % row) / channels)];
    if (y === 0 || x === 0 || y === height - 1 || x === width - 1) return data[i]!;
    let sum = 4 * data[i]!;
    for (const above of [i - row, i, i + row])
      sum += data[above - channels]! + data[above]! + data[above + channels]!;
    return Math.floor(sum / 13 + 0.5);
  };
  return blend(image, smooth, factor);
}

/** Turns the hue by a share of the circle; grey images have none. */
export function hue(image: RawImage, turn: number): RawImage {
  if (image.channels === 1) return image;
  const data = new Uint8Array(image.data.length);
  for (let i = 0; i < data.length; i += 3) {
    const color = [image.data[i]!, image.data[i + 1]!, image.data[i + 2]!] as const;
    const [max, range] = [Math.max(...color), Math.max(...color) - Math.min(...color)];
    const sextant = 6 * turn + sextantOf(color, max, range);
    // Red, green and blue are the same wave, shifted by a third of the circle.
    for (const [c, shift] of [5, 3, 1].entries()) {
      const at = (((shift + sextant) % 6) + 6) % 6;
      data[i + c] = Math.round(max - range * Math.max(0, Math.min(at, 4 - at, 1)));
    }
  }
  return { ...image, data };
}

/** A colour's place on the circle of hues, in sixths of it from red. */
function sextantOf(
  [red, green, blue]: readonly [number, number, number],
  max: number,
  range: number,
): number {
  if (range === 0) return 0;
  if (max === red) return (green - blue) / range;
  return max === green ? 2 + (blue - red) / range : 4 + (red - green) / range;
}

/** Keeps the high bits of each byte. */
export const posterize = (image: RawImage, bits: number): RawImage =>
  mappedAlike(image, (value) => value & (0xff << (8 - bits)));

/** Inverts bytes from a threshold on. */
export const solarize = (image: RawImage, threshold: number): RawImage =>
  mappedAlike(image, (value) => (value < threshold ? value : 255 - value));

/** Counts of the values of each channel. */
function histograms({ channels, data }: RawImage): number[][] {
  const counts = Array.from({ length: channels }, () => Array<number>(256).fill(0));
  for (const [i, value] of data.entries()) counts[i % channels]![value]! += 1;
  return counts;
}

/** Stretches each channel from black to full. */
export function autoContrast(image: RawImage): RawImage {
  const tables = histograms(image).map((counts) => {
    const low = counts.findIndex((count) => count > 0);
    const high = counts.findLastIndex((count) => count > 0);
    const scale = 255 / (high - low);
    return tableOf((value) => (low === high ? value : value * scale - low * scale));
  });
  return mapped(image, tables);
}

/** Flattens the histogram of each channel. */
export function equalize(image: RawImage): RawImage {
  const tables = histograms(image).map((counts) => {
    const last = counts.findLast((count) => count > 0)!;
    const step = Math.floor((image.height * image.width - last) / 255);
    if (step === 0) return tableOf((value) => value);
    let below = step >> 1;
    return tableOf((value) => {
      const level = Math.floor(below / step);
      below += counts[value]!;
      return level;
    });
  });
  return mapped(image, tables);
}
