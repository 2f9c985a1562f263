/** @file Decompositions of resized images: cells gathered by constant tables, and their weighted sums. */
import type { RawAttrs } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { hostConstant } from '../trace/tracing.js';
import type { Decomposition, DecompositionTable } from './decomposition.js';

/** The cells that one new cell is made of, by index along the axis. */
type Sources = readonly { readonly cell: number; readonly weight: number }[];

/** An axis that is resized. */
interface Resized {
  /** Names the tables. */
  readonly key: string;
  readonly axis: 1 | 2;
  /** Cells before and after. */
  readonly size: number;
  readonly newSize: number;
  readonly sources: readonly Sources[];
}

/** Where new cells lie among the old ones. */
function positions(size: number, newSize: number, { alignCorners, halfPixelCenters }: RawAttrs): number[] {
  const aligns = alignCorners && newSize > 1;
  const ratio = (aligns ? size - 1 : size) / (aligns ? newSize - 1 : newSize);
  return Array.from({ length: newSize }, (_, i) => ratio * (halfPixelCenters ? i + 0.5 : i));
}

function bilinear(position: number, size: number, { halfPixelCenters }: RawAttrs): Sources {
  const at = halfPixelCenters ? position - 0.5 : position;
  const low = Math.max(0, Math.floor(at));
  const high = Math.min(size - 1, Math.ceil(at));
  return [
    { cell: low, weight: 1 - (at - low) },
    { cell: high, weight: at - low },
  ];
}

function nearest(position: number, size: number, { alignCorners }: RawAttrs): Sources {
  const cell = alignCorners ? Math.round(position) : Math.floor(position);
  return [{ cell: Math.min(size - 1, cell), weight: 1 }];
}

const METHODS = { bilinear, nearest };
type Method = keyof typeof METHODS;

/** Width and height, as tables. */
const axesOf = (method: Method, from: readonly number[], to: readonly number[], attrs: RawAttrs): Resized[] =>
  ([2, 1] as const).map((axis) => {
    const [size, newSize] = [from[axis]!, to[axis]!];
    const { alignCorners = false, halfPixelCenters = false } = attrs;
    return {
      key: `resize ${method} ${size} ${newSize} ${alignCorners} ${halfPixelCenters}`,
      axis,
      size,
      newSize,
      sources: positions(size, newSize, attrs).map((at) => METHODS[method](at, size, attrs)),
    };
  });

const indices = (key: string, values: readonly number[]): tf.Tensor1D =>
  hostConstant(key, { shape: [values.length], dtype: 'int32' }, () => Int32Array.from(values)) as tf.Tensor1D;

/** Weights along an axis of images. */
const along = (key: string, axis: 1 | 2, values: readonly number[]): tf.Tensor =>
  tf.reshape(
    hostConstant(key, { shape: [values.length], dtype: 'float32' }, () => Float32Array.from(values)),
    axis === 1 ? [-1, 1, 1] : [-1, 1],
  );

/** Each new cell as a mean of two old ones by their distances, or as one old cell. */
function resizeAxis(x: tf.Tensor, { key, axis, sources }: Resized): tf.Tensor {
  const cells = (which: number): tf.Tensor =>
    tf.gather(
      x,
      indices(
        `${key} cells ${which}`,
        sources.map((list) => list[which]!.cell),
      ),
      axis,
    );
  const [low, shares] = [cells(0), sources.map((list) => list[1]?.weight ?? 0)];
  if (shares.every((share) => share === 0)) return low;
  return tf.add(low, tf.mul(tf.sub(cells(1), low), along(`${key} shares`, axis, shares)));
}

/** The transpose of `resizeAxis`: each old cell sums its shares of new ones. */
function sumAxis(dy: tf.Tensor, { key, axis, size, newSize, sources }: Resized): tf.Tensor {
  const uses = Array.from({ length: size }, () => new Map<number, number>());
  sources.forEach((list, i) => {
    for (const { cell, weight } of list)
      if (weight !== 0) uses[cell]!.set(i, (uses[cell]!.get(i) ?? 0) + weight);
  });
  const most = Math.max(1, ...uses.map((use) => use.size));
  // Behind the last new cell is a zero, for old cells that fewer new ones use.
  const padded = uses.flatMap((use) => [
    ...use,
    ...Array<[number, number]>(most - use.size).fill([newSize, 1]),
  ]);
  const pads = dy.shape.map((_, i): [number, number] => [0, i === axis ? 1 : 0]);
  const wide = padded.some(([i]) => i === newSize) ? tf.pad(dy, pads) : dy;
  const parts = tf.gather(
    wide,
    indices(
      `${key} users`,
      padded.map(([i]) => i),
    ),
    axis,
  );
  const weights = padded.map(([, weight]) => weight);
  const isWhole = weights.every((weight) => weight === 1);
  const weighted = isWhole ? parts : tf.mul(parts, along(`${key} weights`, axis, weights));
  const shape = [...dy.shape.slice(0, axis), size, most, ...dy.shape.slice(axis + 1)];
  return tf.sum(tf.reshape(weighted, shape), axis + 1);
}

const resize =
  (method: Method): Decomposition =>
  ({ images }, attrs) => {
    const x = method === 'bilinear' ? tf.cast(images!, 'float32') : images!;
    return axesOf(method, x.shape, [0, ...attrs.size], attrs).reduce(resizeAxis, x);
  };

const gradient =
  (method: Method): Decomposition =>
  ({ dy, images }, attrs) =>
    axesOf(method, images!.shape, dy!.shape, attrs).reduce(sumAxis, dy!);

export const resizingDecompositions: DecompositionTable = {
  ResizeBilinear: resize('bilinear'),
  ResizeBilinearGrad: gradient('bilinear'),
  ResizeNearestNeighbor: resize('nearest'),
  ResizeNearestNeighborGrad: gradient('nearest'),
};

/** tfjs's are those without half-pixel centers, and swap height and width. */
for (const [kernelName, method] of [
  ['ResizeBilinear', 'bilinear'],
  ['ResizeNearestNeighbor', 'nearest'],
] as const) {
  tf.registerGradient({
    kernelName,
    inputsToSave: ['images'],
    gradFunc: (dy, [images], attrs) => ({
      images: () =>
        gradient(method)({ dy: dy as tf.Tensor, images: images! }, attrs as RawAttrs) as tf.Tensor,
    }),
  });
}
