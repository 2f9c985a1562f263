/** @file Poolings along one axis after the other, each over the taps of that axis. */
import { pooling, poolingGradient } from '../rules/convolutionRules.js';
import { defineKernels } from '../rules/index.js';
import { type Composite, FLOAT, NUMBERS } from '../rules/operation.js';
import { type Windows, windowsOf } from '../rules/windowAttrs.js';
import * as tf from '../tfjs/tfjs.js';
import { allTaps, cellCounts, firstOf, padded, scatterTaps, still, tapCells } from './windows.js';

type Decompose = Composite['decompose'];

/** The cells that each tap reads, by window. */
function readTaps(x: tf.Tensor, axis: 1 | 2, windows: Windows, padding: number): tf.Tensor[] {
  const wide = padded(x, axis === 1 ? [windows, still(x.shape[2]!)] : [still(x.shape[1]!), windows], padding);
  return Array.from({ length: windows.taps }, (_, tap) => tapCells(wide, axis, allTaps(windows), tap));
}

/** A value below every cell. */
const least = ({ dtype }: tf.Tensor): number => (dtype === 'int32' ? -(2 ** 31) : Number.NEGATIVE_INFINITY);

const largest = (x: tf.Tensor, axis: 1 | 2, windows: Windows): tf.Tensor =>
  readTaps(x, axis, windows, least(x)).reduce((max, cells) => tf.maximum(max, cells));

const maxima: Decompose = ([x], attrs) => {
  const [height, width] = windowsOf(attrs);
  return [largest(largest(x!, 2, width), 1, height)];
};

/** Routes dy to the first tap that holds the maximum. */
function toFirst(dy: tf.Tensor, x: tf.Tensor, max: tf.Tensor, axis: 1 | 2, windows: Windows): tf.Tensor {
  const firsts = firstOf(readTaps(x, axis, windows, least(x)), max);
  const parts = firsts.map((isFirst) => tf.where(isFirst, dy, tf.zerosLike(dy)));
  return scatterTaps(parts, axis, windows);
}

/**
 * The first row that holds the window's maximum, at that row's first position: the first maximum in row-major order.
 */
const maximaGradient: Decompose = ([dy, x, y], attrs) => {
  const [height, width] = windowsOf(attrs);
  const rows = largest(x!, 2, width);
  return [toFirst(toFirst(dy!, rows, y!, 1, height), x!, rows, 2, width)];
};

const means: Decompose = ([x], attrs) => {
  const [height, width] = windowsOf(attrs);
  const add = (a: tf.Tensor, b: tf.Tensor): tf.Tensor => tf.add(a, b);
  const sums = readTaps(readTaps(x!, 2, width, 0).reduce(add), 1, height, 0).reduce(add);
  const across = cellCounts(width);
  const counts = cellCounts(height).flatMap((down) => across.map((cells) => down * cells));
  return [tf.div(sums, tf.tensor(counts, [height.count, width.count, 1]))];
};

const meansGradient: Decompose = ([dy], attrs) => {
  const [height, width] = windowsOf(attrs);
  const same = (x: tf.Tensor, { taps }: Windows): tf.Tensor[] => new Array<tf.Tensor>(taps).fill(x);
  const part = tf.mul(dy!, 1 / (height.taps * width.taps));
  const rows = scatterTaps(same(part, height), 1, height);
  return [scatterTaps(same(rows, width), 2, width)];
};

defineKernels({
  /** The maximum of each window, without padding. NaN wins, while tfjs's cpu kernel skips it. */
  MaxPool: pooling('maxPool', NUMBERS, maxima),
  MaxPoolGrad: poolingGradient('The gradient of maxPool', ['dy', 'input', 'output'], maximaGradient),
  /** The mean of each window's non-padding cells. */
  AvgPool: pooling('avgPool', FLOAT, means),
  /** dy / (cells of a window), even where some are padding; see the gradient of AvgPool. */
  AvgPoolGrad: poolingGradient('The gradient of avgPool', ['dy', 'input'], meansGradient),
});
