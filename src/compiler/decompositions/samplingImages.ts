/** @file Decompositions of kernels that sample images at computed or rotated positions. */
import { expects } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { hostConstant } from '../trace/tracing.js';
import { type Decomposition, type DecompositionTable, differentiate } from './decomposition.js';

type Images = readonly [batch: number, height: number, width: number, channels: number];

const clamp = (x: tf.Tensor, low: number, high: number): tf.Tensor => tf.minimum(tf.maximum(x, low), high);

const within = (x: tf.Tensor, low: number, high: number): tf.Tensor =>
  tf.logicalAnd(tf.greaterEqual(x, low), tf.lessEqual(x, high));

/** A position as an index, of whichever cell where it is outside of the axis. */
const cellAt = (position: tf.Tensor, size: number): tf.Tensor =>
  tf.cast(clamp(position, 0, size - 1), 'int32');

/** The pixels [..., C] of images at rows, columns and images of the batch, indices that broadcast. */
function pixels(images: tf.Tensor, image: tf.Tensor, row: tf.Tensor, column: tf.Tensor): tf.Tensor {
  const [, height, width, channels] = images.shape as unknown as Images;
  const times = (index: tf.Tensor, count: number): tf.Tensor => tf.mul(index, tf.scalar(count, 'int32'));
  const place = tf.add(times(tf.add(times(image, height), row), width), column);
  return tf.gather(tf.reshape(images, [-1, channels]), place as tf.Tensor1D);
}

const blend = (low: tf.Tensor, high: tf.Tensor, share: tf.Tensor): tf.Tensor =>
  tf.add(low, tf.mul(tf.sub(high, low), share));

/** Math.round's: halves go up. */
const rounded = (x: tf.Tensor): tf.Tensor => tf.floor(tf.add(x, 0.5));

/** 0, 1, … as float32. */
const counts = (size: number): tf.Tensor =>
  hostConstant(`counts ${size}`, { shape: [size], dtype: 'float32' }, () =>
    Float32Array.from({ length: size }, (_, i) => i),
  );

/** The positions [boxes, count] of an axis between two sides of each box; one position lies in the middle. */
function between(from: tf.Tensor, to: tf.Tensor, count: number, size: number): tf.Tensor {
  const [begin, end] = [tf.expandDims(from, 1), tf.expandDims(to, 1)];
  if (count === 1) return tf.mul(tf.add(begin, end), 0.5 * (size - 1));
  const steps = counts(count);
  // Divided last, so that sides of 0 and 1 are met exactly.
  const sum = tf.add(tf.mul(begin, tf.sub(count - 1, steps)), tf.mul(end, steps));
  return tf.div(tf.mul(sum, size - 1), count - 1);
}

const cropAndResize: Decomposition = ({ image, boxes, boxInd }, { cropSize, method, extrapolationValue }) => {
  const [batch, height, width] = image!.shape as unknown as Images;
  const [down, across] = cropSize as [number, number];
  const [top, left, bottom, right] = tf.unstack(boxes!, 1) as [tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor];
  const x = tf.cast(image!, 'float32');
  const y = tf.expandDims(between(top, bottom, down, height), 2);
  const x2 = tf.expandDims(between(left, right, across, width), 1);
  const index = tf.reshape(boxInd!, [-1, 1, 1]);
  const from = cellAt(index, batch);
  const read = (row: tf.Tensor, column: tf.Tensor): tf.Tensor =>
    pixels(x, from, cellAt(row, height), cellAt(column, width));
  const bilinear = (): tf.Tensor => {
    const [rows, columns] = [y, x2].map((at) => [tf.floor(at), tf.ceil(at)]) as [tf.Tensor[], tf.Tensor[]];
    const share = (at: tf.Tensor, low: tf.Tensor): tf.Tensor => tf.expandDims(tf.sub(at, low), -1);
    const row = (which: number): tf.Tensor =>
      blend(read(rows[which]!, columns[0]!), read(rows[which]!, columns[1]!), share(x2, columns[0]!));
    return blend(row(0), row(1), share(y, rows[0]!));
  };
  const sampled = method === 'nearest' ? read(rounded(y), rounded(x2)) : bilinear();
  const inside = tf.logicalAnd(within(y, 0, height - 1), within(x2, 0, width - 1));
  const value = tf.where(tf.expandDims(inside, -1), sampled, tf.fill(sampled.shape, extrapolationValue));
  // Boxes of images that are not there are 0.
  const isThere = tf.expandDims(tf.less(index, batch), -1);
  return tf.where(isThere, value, tf.zerosLike(value));
};

/** Cells outside of an axis of `size` cells, by tfjs's fill modes. */
const MODES: Readonly<Record<string, (x: tf.Tensor, size: number) => tf.Tensor>> = {
  constant: (x) => x,
  nearest: (x, size) => clamp(x, 0, size - 1),
  /** [abcd] as [dcba|abcd|dcba]. */
  reflect: (x, size) => {
    if (size <= 1) return tf.zerosLike(x);
    const whole = (from: tf.Tensor): tf.Tensor => tf.mul(tf.floor(tf.div(from, 2 * size)), 2 * size);
    const back = tf.add(x, whole(tf.neg(x)));
    const before = tf.where(tf.less(back, -size), tf.add(back, 2 * size), tf.sub(-1, back));
    const along = tf.sub(x, whole(x));
    const behind = tf.where(tf.greaterEqual(along, size), tf.sub(2 * size - 1, along), along);
    return clamp(tf.where(tf.less(x, 0), before, tf.where(tf.greater(x, size - 1), behind, x)), 0, size - 1);
  },
  /** [abcd] as [abcd|abcd|abcd]. */
  wrap: (x, size) => {
    if (size <= 1) return tf.zerosLike(x);
    const times = (from: tf.Tensor): tf.Tensor => tf.floor(tf.div(from, size - 1));
    const before = tf.add(x, tf.mul(tf.add(times(tf.neg(x)), 1), size));
    const behind = tf.sub(x, tf.mul(times(x), size));
    return clamp(tf.where(tf.less(x, 0), before, tf.where(tf.greater(x, size - 1), behind, x)), 0, size - 1);
  },
};

/** Each result is read at (a0 x + a1 y + a2, a3 x + a4 y + a5) / (a6 x + a7 y + 1). */
const transform: Decomposition = ({ image, transforms }, attrs) => {
  const { interpolation, fillMode, fillValue = 0, outputShape } = attrs;
  const [batch, height, width] = image!.shape as unknown as Images;
  const [down, across] = (outputShape ?? [height, width]) as [number, number];
  const fill = MODES[fillMode ?? 'constant'];
  expects(fill !== undefined, `a fill mode out of ${Object.keys(MODES)}`, fillMode);
  const a = tf.unstack(transforms!, 1).map((of) => tf.reshape(of, [-1, 1, 1]));
  const [x, y] = [tf.reshape(counts(across), [1, 1, -1]), tf.reshape(counts(down), [1, -1, 1])];
  const plane = (i: number, offset: tf.Tensor | number): tf.Tensor =>
    tf.add(tf.add(tf.mul(a[i]!, x), tf.mul(a[i + 1]!, y)), offset);
  const depth = plane(6, 1);
  const column = fill(tf.div(plane(0, a[2]!), depth), width);
  const row = fill(tf.div(plane(3, a[5]!), depth), height);
  const from = tf.reshape(tf.cast(counts(batch), 'int32'), [-1, 1, 1]);
  const read = (rows: tf.Tensor, columns: tf.Tensor): tf.Tensor => {
    const inside = tf.logicalAnd(within(rows, 0, height - 1), within(columns, 0, width - 1));
    const cells = pixels(image!, from, cellAt(rows, height), cellAt(columns, width));
    return tf.where(tf.expandDims(inside, -1), cells, tf.fill(cells.shape, fillValue));
  };
  const bilinear = (): tf.Tensor => {
    const [top, left] = [tf.floor(row), tf.floor(column)];
    const [bottom, right] = [tf.add(top, 1), tf.add(left, 1)];
    const mean = (low: tf.Tensor, high: tf.Tensor, at: tf.Tensor, begin: tf.Tensor): tf.Tensor => {
      const share = tf.expandDims(tf.sub(at, begin), -1);
      return tf.add(tf.mul(tf.sub(1, share), low), tf.mul(share, high));
    };
    const across = (rows: tf.Tensor): tf.Tensor => mean(read(rows, left), read(rows, right), column, left);
    return mean(across(top), across(bottom), row, top);
  };
  const sampled = interpolation === 'bilinear' ? bilinear() : read(rounded(row), rounded(column));
  const isSomewhere = tf.expandDims(tf.notEqual(depth, 0), -1);
  return tf.where(isSomewhere, sampled, tf.fill(sampled.shape, fillValue));
};

/** The pixel that each one of a rotated image comes from, by row-major position; -1 outside of the image. */
function rotatedCells(
  height: number,
  width: number,
  radians: number,
  center: number | [number, number],
): number[] {
  const [centerX, centerY] = tf.backend_util.getImageCenter(center, height, width);
  const [sin, cos] = [Math.sin(radians), Math.cos(radians)];
  return Array.from({ length: height * width }, (_, i) => {
    const [x, y] = [(i % width) - centerX, Math.floor(i / width) - centerY];
    const column = Math.round(x * cos - y * sin + centerX);
    const row = Math.round(x * sin + y * cos + centerY);
    return column >= 0 && column < width && row >= 0 && row < height ? row * width + column : -1;
  });
}

const OPAQUE = 255;

const rotate: Decomposition = ({ image }, { radians, fillValue, center }) => {
  const [batch, height, width, channels] = image!.shape as unknown as Images;
  const cells = rotatedCells(height, width, radians, center);
  const key = `rotation ${height} ${width} ${radians} ${center}`;
  const spec = { shape: [height * width], dtype: 'int32' } as const;
  const from = hostConstant(`${key} cells`, spec, () => Int32Array.from(cells, (cell) => Math.max(0, cell)));
  const inside = hostConstant(`${key} inside`, spec, () =>
    Int32Array.from(cells, (cell) => Number(cell >= 0)),
  );
  const fills = Array.from({ length: channels }, (_, channel) => {
    if (typeof fillValue === 'number') return fillValue;
    return channel === 3 ? OPAQUE : (fillValue[channel] as number);
  });
  const rows = tf.gather(tf.reshape(image!, [batch, height * width, channels]), from as tf.Tensor1D, 1);
  const fill = tf.add(tf.zerosLike(rows), tf.tensor1d(fills, image!.dtype as 'float32'));
  const rotated = tf.where(tf.reshape(tf.cast(inside, 'bool'), [1, -1, 1]), rows, fill);
  return tf.reshape(rotated, image!.shape);
};

export const samplingDecompositions: DecompositionTable = {
  CropAndResize: cropAndResize,
  Transform: transform,
  RotateWithOffset: rotate,
};

/** Missing in tfjs. */
differentiate('CropAndResize', cropAndResize, ['image', 'boxes', 'boxInd'], 1);
differentiate('Transform', transform, ['image', 'transforms'], 1);
differentiate('RotateWithOffset', rotate, ['image']);
