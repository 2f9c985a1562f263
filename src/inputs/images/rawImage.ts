/** @file Images as bytes, and making them the size and colours of a batch. */

/** Pixels as bytes, [height, width, channels]; 1 channel is grey, 3 are red, green and blue. */
export interface RawImage {
  readonly height: number;
  readonly width: number;
  readonly channels: 1 | 3;
  readonly data: Uint8Array;
}

/** Shares of red, green and blue in grey (ITU-R BT.601, as in JPEG), in 65536ths as Pillow has them. */
const LUMA = [19595, 38470, 7471] as const;

/** The image with 1 or 3 channels. */
export function withChannels(image: RawImage, channels: 1 | 3): RawImage {
  if (image.channels === channels) return image;
  const pixels = image.height * image.width;
  const data = new Uint8Array(pixels * channels);
  for (let i = 0; i < pixels; i++) {
    if (channels === 3) data.fill(image.data[i]!, 3 * i, 3 * i + 3);
    else data[i] = (LUMA.reduce((sum, share, c) => sum + share * image.data[3 * i + c]!, 0) + 0x8000) >> 16;
  }
  return { ...image, channels, data };
}

/** The largest part of the image, in its middle, that has the aspect ratio of height × width. */
export function centerCrop(image: RawImage, height: number, width: number): RawImage {
  const scale = Math.min(image.height / height, image.width / width);
  const [rows, columns] = [height, width].map((size) => Math.max(1, Math.round(size * scale))) as [
    number,
    number,
  ];
  const [top, left] = [(image.height - rows) >> 1, (image.width - columns) >> 1];
  return crop(image, { top, left, height: rows, width: columns });
}

/** Height and width in pixels. */
export type ImageSize = Pick<RawImage, 'height' | 'width'>;

/** Part of an image, in pixels. */
export interface Box extends ImageSize {
  readonly top: number;
  readonly left: number;
}

/** The part of the image within a box that lies in it. */
export function crop(image: RawImage, { top, left, height, width }: Box): RawImage {
  const data = new Uint8Array(height * width * image.channels);
  for (let y = 0; y < height; y++) {
    const start = ((top + y) * image.width + left) * image.channels;
    data.set(image.data.subarray(start, start + width * image.channels), y * width * image.channels);
  }
  return { ...image, height, width, data };
}

/** Weight of a pixel by its distance, in pixels of the smaller image, and the distance from which on it is 0. */
interface Filter {
  readonly weight: (distance: number) => number;
  readonly support: number;
}

const FILTERS = {
  bilinear: { weight: (x) => Math.max(0, 1 - x), support: 1 },
  /** Keys (1981), with the coefficient -0.5 of Pillow. */
  bicubic: {
    weight: (x) => (x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0),
    support: 2,
  },
} as const satisfies Record<string, Filter>;

/** Names of the filters by which images are resized. */
export type ResizeFilter = keyof typeof FILTERS;

/** The image at another size, as Pillow makes it: where it shrinks, the filter is as much wider. */
export function resize(
  image: RawImage,
  height: number,
  width: number,
  filter: ResizeFilter = 'bilinear',
): RawImage {
  const wide = resizeRows(transposed(image), width, FILTERS[filter]);
  return resizeRows(transposed(wide), height, FILTERS[filter]);
}

/** Weights of the rows that a row of the result is made of. */
function taps(
  from: number,
  to: number,
  at: number,
  { weight, support }: Filter,
): { first: number; weights: number[] } {
  const scale = from / to;
  const wider = Math.max(scale, 1);
  const center = (at + 0.5) * scale;
  const first = Math.max(0, Math.floor(center - support * wider + 0.5));
  const end = Math.min(from, Math.floor(center + support * wider + 0.5));
  const weights = Array.from({ length: end - first }, (_, i) =>
    weight(Math.abs(first + i + 0.5 - center) / wider),
  );
  const sum = weights.reduce((a, b) => a + b, 0);
  return { first, weights: weights.map((each) => each / sum) };
}

function resizeRows(image: RawImage, height: number, filter: Filter): RawImage {
  if (image.height === height) return image;
  const size = image.width * image.channels;
  const data = new Uint8Array(height * size);
  for (let y = 0; y < height; y++) {
    const { first, weights } = taps(image.height, height, y, filter);
    for (let x = 0; x < size; x++) {
      let sum = 0;
      for (const [i, weight] of weights.entries()) sum += weight * image.data[(first + i) * size + x]!;
      data[y * size + x] = Math.min(255, Math.max(0, Math.round(sum)));
    }
  }
  return { ...image, height, data };
}

/** The image with rows and columns exchanged. */
function transposed({ height, width, channels, data: from }: RawImage): RawImage {
  const data = new Uint8Array(from.length);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      for (let c = 0; c < channels; c++)
        data[(x * height + y) * channels + c] = from[(y * width + x) * channels + c]!;
    }
  }
  return { height: width, width: height, channels, data };
}
