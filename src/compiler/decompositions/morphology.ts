/** @file Decompositions of grayscale dilation, and of the position of a window's maximum: maxima over taps. */
import { allTaps, firstOf, padded, scatterTaps, tapCells } from '../ops/windows.js';
import { type Windows, windowAttrs, windowsOf } from '../rules/windowAttrs.js';
import * as tf from '../tfjs/tfjs.js';
import { hostConstant } from '../trace/tracing.js';
import { type Decomposition, type DecompositionTable, differentiate, runKernel } from './decomposition.js';

type Axes = readonly [height: Windows, width: Windows];

/** Below every cell. */
const least = ({ dtype }: tf.Tensor, bits: 30 | 31): number =>
  dtype === 'int32' ? -(2 ** bits) : Number.NEGATIVE_INFINITY;

/** The cells [B, windows down, windows across, C] that each tap reads, in row-major order. */
function cellsOfTaps(x: tf.Tensor, axes: Axes, padding: number): tf.Tensor[] {
  const wide = padded(x, axes, padding);
  const [height, width] = axes.map(allTaps);
  const rows = Array.from({ length: axes[0].taps }, (_, row) => tapCells(wide, 1, height!, row));
  return rows.flatMap((cells) =>
    Array.from({ length: axes[1].taps }, (_, column) => tapCells(cells, 2, width!, column)),
  );
}

const largest = (values: readonly tf.Tensor[]): tf.Tensor => values.reduce((a, b) => tf.maximum(a, b));

/** Each tap's cells plus its filter [height, width, C]. */
function sums(x: tf.Tensor, filter: tf.Tensor, axes: Axes): tf.Tensor[] {
  const taps = tf.unstack(tf.reshape(filter, [-1, filter.shape[2]!]));
  // A sum with the padding has to fit.
  return cellsOfTaps(x, axes, least(x, 30)).map((cells, tap) => tf.add(cells, taps[tap]!));
}

const dilationWindows = (x: tf.Tensor, filter: tf.Tensor, raw: Readonly<Record<string, unknown>>): Axes =>
  windowsOf(windowAttrs('dilation2d', x.shape, filter.shape.slice(0, 2) as [number, number], raw));

/** dy where each tap holds the maximum, 0 elsewhere. */
const routed: (...call: Parameters<Decomposition>) => { axes: Axes; parts: tf.Tensor[] } = (
  { x, filter, dy },
  attrs,
) => {
  const axes = dilationWindows(x!, filter!, attrs);
  const values = sums(x!, filter!, axes);
  const parts = firstOf(values, largest(values)).map((first) => tf.where(first, dy!, tf.zerosLike(dy!)));
  return { axes, parts };
};

const byInput: Decomposition = (inputs, attrs) => {
  const { axes, parts } = routed(inputs, attrs);
  const [height, width] = axes;
  const rows = Array.from({ length: height.taps }, (_, row) =>
    scatterTaps(parts.slice(row * width.taps, (row + 1) * width.taps), 2, width),
  );
  return scatterTaps(rows, 1, height);
};

const byFilter: Decomposition = (inputs, attrs) => {
  const { parts } = routed(inputs, attrs);
  const taps = parts.map((part) => tf.sum(part, [0, 1, 2]));
  return tf.reshape(tf.stack(taps), inputs.filter!.shape);
};

/** The maximum of each window, and its position among the cells of its image, or of all images. */
const maxWithPosition: Decomposition = ({ x }, attrs) => {
  const { filterSize, includeBatchInIndex } = attrs;
  const window = typeof filterSize === 'number' ? ([filterSize, filterSize] as const) : filterSize;
  const [height, width] = windowsOf(windowAttrs('maxPoolWithArgmax', x!.shape, window, attrs));
  const [batch, rows, columns, channels] = x!.shape as [number, number, number, number];
  const max = runKernel('MaxPool', { x: x! }, { ...attrs, dimRoundingMode: undefined });
  const taps = cellsOfTaps(x!, [height, width], least(x!, 31));
  const offsets = taps.map((_, tap) => {
    const [down, across] = [Math.floor(tap / width.taps), tap % width.taps];
    return (down * height.dilation * columns + across * width.dilation) * channels;
  });
  const none = tf.fill(max.shape, 0, 'int32');
  const offset = firstOf(taps, max).reduce(
    (chosen, first, tap) => tf.where(first, tf.fill(max.shape, offsets[tap]!, 'int32'), chosen),
    none,
  );
  const count = height.count * width.count;
  const shape = [height.count, width.count, channels];
  const key = `windows ${JSON.stringify([height, width, channels])}`;
  const begins = hostConstant(key, { shape, dtype: 'int32' }, () =>
    Int32Array.from({ length: count * channels }, (_, i) => {
      const [channel, at] = [i % channels, Math.floor(i / channels)];
      const row = Math.floor(at / width.count) * height.stride - height.before;
      const column = (at % width.count) * width.stride - width.before;
      return (row * columns + column) * channels + channel;
    }),
  );
  const image = tf.reshape(tf.range(0, batch, 1, 'int32'), [-1, 1, 1, 1]);
  const within = tf.add(begins, offset);
  const position = includeBatchInIndex
    ? tf.add(within, tf.mul(image, tf.scalar(rows * columns * channels, 'int32')))
    : within;
  const isFound = tf.equal(max, largest(taps));
  return [
    max,
    tf.where(
      tf.logicalAnd(isFound, tf.greater(max, least(x!, 31))),
      position,
      tf.fill(max.shape, -1, 'int32'),
    ),
  ];
};

export const morphologyDecompositions: DecompositionTable = {
  Dilation2D: ({ x, filter }, attrs) => largest(sums(x!, filter!, dilationWindows(x!, filter!, attrs))),
  Dilation2DBackpropInput: byInput,
  Dilation2DBackpropFilter: byFilter,
  MaxPoolWithArgmax: maxWithPosition,
};

/** Missing in tfjs; positions have none. */
differentiate('MaxPoolWithArgmax', maxWithPosition, ['x']);
