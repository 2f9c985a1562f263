/** @file Images of batches as one picture. */
import { type HostTensor, sizeOf, type TensorSpec } from '../../compiler/program/index.js';
import { arraysOf, type Batch } from '../../inputs/index.js';
import { encodePng } from '../../summaries/index.js';

/** Smaller images are enlarged to about as many pixels a side. */
const LEAST_SIDE = 64;
/** Pixels between images. */
const GAP = 2;

/** A picture of images, row by row of the grid. */
export interface PictureGrid {
  /** The PNG file. */
  readonly png: Uint8Array;
  readonly columns: number;
  readonly images: number;
  /** Values that are black and white: 0 and 1 where all are within. */
  readonly range: readonly [black: number, white: number];
  /** Of the images, in their order; empty where the batches have no int32 array `labels` with one for each. */
  readonly labels: readonly number[];
  /** Names of the labels' classes, where the input knows them; else null. */
  readonly labelNames: readonly string[] | null;
}

/** Whether an array is one of images: float32 [rows, …, height, width, 1 or 3]. */
export function isPicture({ shape, dtype }: TensorSpec): boolean {
  return dtype === 'float32' && shape.length >= 4 && [1, 3].includes(shape.at(-1)!);
}

function rangeOf(arrays: readonly HostTensor[]): readonly [number, number] {
  let [low, high] = [0, 1];
  for (const { data } of arrays) {
    for (const value of data) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return [low, high];
}

/** Arrays of the same name in several batches. */
interface Pictures {
  readonly arrays: readonly HostTensor[];
  readonly labels: readonly number[];
}

/** Names of the classes that values are ids of; null where an id has none. */
export function namesOf(ids: readonly number[], classes: readonly string[] | null): readonly string[] | null {
  const names = ids.map((id) => classes?.[id]);
  return names.every((name) => name !== undefined) ? names : null;
}

/** Path of the labels beside images. */
export const labelsBeside = (path: string): string => path.replace(/[^.]*$/, 'labels');

/** Images by their paths in batches, with the labels beside them. */
export function picturesOf(batches: readonly Batch[]): ReadonlyMap<string, Pictures> {
  const found = new Map<string, { arrays: HostTensor[]; labels: number[] }>();
  for (const batch of batches) {
    const all = new Map(arraysOf(batch));
    for (const [path, array] of all) {
      if (!isPicture(array)) continue;
      const pictures = found.get(path) ?? { arrays: [], labels: [] };
      found.set(path, pictures);
      pictures.arrays.push(array);
      const labels = all.get(labelsBeside(path));
      const isOneEach =
        labels?.dtype === 'int32' && sizeOf(labels.shape) === sizeOf(array.shape.slice(0, -3));
      if (isOneEach) pictures.labels.push(...labels.data);
    }
  }
  return found;
}

/** A nearly square grid of images of one shape. @param classes names of the labels, by id */
export function pictureGrid({ arrays, labels }: Pictures, classes: readonly string[] | null): PictureGrid {
  const [height, width, channels] = arrays[0]!.shape.slice(-3) as [number, number, 1 | 3];
  const size = height * width * channels;
  const images = arrays.flatMap(({ data }) =>
    Array.from({ length: data.length / size }, (_, i) => data.subarray(i * size, (i + 1) * size)),
  );
  const [low, high] = rangeOf(arrays);
  const columns = Math.ceil(Math.sqrt(images.length));
  const rows = Math.ceil(images.length / columns);
  const scale = Math.max(1, Math.ceil(LEAST_SIDE / Math.max(height, width)));
  const [stepY, stepX] = [height * scale + GAP, width * scale + GAP];
  const [gridHeight, gridWidth] = [rows * stepY - GAP, columns * stepX - GAP];
  const pixels = new Float32Array(gridHeight * gridWidth * channels).fill(1);
  for (const [i, image] of images.entries()) {
    const [top, left] = [Math.floor(i / columns) * stepY, (i % columns) * stepX];
    for (let y = 0; y < height * scale; y++) {
      for (let x = 0; x < width * scale; x++) {
        const from = (Math.floor(y / scale) * width + Math.floor(x / scale)) * channels;
        const to = ((top + y) * gridWidth + left + x) * channels;
        for (let c = 0; c < channels; c++) pixels[to + c] = (image[from + c]! - low) / (high - low);
      }
    }
  }
  const png = encodePng(pixels, gridHeight, gridWidth, channels);
  return {
    png,
    columns,
    images: images.length,
    range: [low, high],
    labels,
    labelNames: namesOf(labels, classes),
  };
}
