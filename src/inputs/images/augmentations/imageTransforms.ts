/** @file Geometric transforms: flips, padding, shears, shifts and rotations. */
import type { Box, RawImage } from '../rawImage.js';

/** Where a pixel of the result comes from, in rows and columns; undefined for none. */
type Origin = (y: number, x: number) => readonly [y: number, x: number] | undefined;

/** An image gathered from another's pixels, of one value outside of it. */
function gathered(
  image: RawImage,
  { height, width }: Pick<RawImage, 'height' | 'width'>,
  origin: Origin,
  fill: number,
): RawImage {
  const { channels } = image;
  const data = new Uint8Array(height * width * channels).fill(fill);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const from = origin(y, x);
      if (from === undefined) continue;
      const [start, to] = [(from[0] * image.width + from[1]) * channels, (y * width + x) * channels];
      for (let c = 0; c < channels; c++) data[to + c] = image.data[start + c]!;
    }
  }
  return { height, width, channels, data };
}

/** The mirror image, left to right. */
export const flipped = (image: RawImage): RawImage =>
  gathered(image, image, (y, x) => [y, image.width - 1 - x], 0);

/** Values beyond an image's border: a constant, the edge pixel, or the mirror image without it. */
export type PaddingMode = 'constant' | 'edge' | 'reflect';

/** The place of coordinate `at` of an image of `size` pixels that continues beyond its border. */
const placeBeyond: Record<PaddingMode, (at: number, size: number) => number | undefined> = {
  constant: (at, size) => (at >= 0 && at < size ? at : undefined),
  edge: (at, size) => Math.min(Math.max(at, 0), size - 1),
  reflect: (at, size) => {
    const period = Math.max(1, 2 * (size - 1));
    const phase = ((at % period) + period) % period;
    return Math.min(phase, period - phase) % size;
  },
};

/** The part of an image within a box that may reach beyond it. */
export function cropBeyond(image: RawImage, box: Box, mode: PaddingMode, fill: number): RawImage {
  const place = placeBeyond[mode];
  const origin: Origin = (y, x) => {
    const [row, column] = [place(box.top + y, image.height), place(box.left + x, image.width)];
    return row === undefined || column === undefined ? undefined : [row, column];
  };
  return gathered(image, box, origin, fill);
}

/** Coefficients of x' = a·x + b·y + c, y' = d·x + e·y + f, from places in the result to places in the image. */
type Affine = readonly [a: number, b: number, c: number, d: number, e: number, f: number];

/** An affine transform; each pixel is the one that its middle falls into. */
function affine(image: RawImage, [a, b, c, d, e, f]: Affine, fill: number): RawImage {
  const origin: Origin = (y, x) => {
    const [atX, atY] = [x + 0.5, y + 0.5];
    const [column, row] = [Math.floor(a * atX + b * atY + c), Math.floor(d * atX + e * atY + f)];
    const isWithin = column >= 0 && column < image.width && row >= 0 && row < image.height;
    return isWithin ? [row, column] : undefined;
  };
  return gathered(image, image, origin, fill);
}

/** Shifts each row by `slope` pixels more than the one above it. */
export const shearX = (image: RawImage, slope: number, fill: number): RawImage =>
  affine(image, [1, slope, 0, 0, 1, 0], fill);

/** Shifts each column by `slope` pixels more than the one to its left. */
export const shearY = (image: RawImage, slope: number, fill: number): RawImage =>
  affine(image, [1, 0, 0, slope, 1, 0], fill);

/** Shifts by whole pixels. */
export const translate = (image: RawImage, right: number, down: number, fill: number): RawImage =>
  affine(image, [1, 0, -right, 0, 1, -down], fill);

/** Turns about the middle, counterclockwise, by degrees. */
export function rotate(image: RawImage, degrees: number, fill: number): RawImage {
  const angle = (degrees * Math.PI) / 180;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const [x, y] = [image.width / 2, image.height / 2];
  return affine(image, [cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y], fill);
}
