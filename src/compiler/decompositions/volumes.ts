/**
 * @file Decompositions of convolutions and poolings over [batch, depth, height, width, channels]: those of images, with
 * the depth among the channels or, for poolings, as an axis of its own.
 */
import { behind, cellCounts, cellsFrom, scatterTaps, still } from '../ops/windows.js';
import type { RawAttrs } from '../rules/operation.js';
import { volumeWindows, type Windows } from '../rules/windowAttrs.js';
import * as tf from '../tfjs/tfjs.js';
import { type Decomposition, type DecompositionTable, differentiate, runKernel } from './decomposition.js';

type Axes = readonly [depth: Windows, height: Windows, width: Windows];

/** Cells in front that no window reads. */
const skips = (axes: Axes): number[] => [0, ...axes.map(({ before }) => Math.max(0, -before)), 0];

/** The windows over the remaining cells. */
const unskipped = (axes: Axes): Axes =>
  axes.map((axis) => ({
    ...axis,
    size: axis.size + Math.min(0, axis.before),
    before: Math.max(0, axis.before),
  })) as unknown as Axes;

/** `compute` of a volume's cells that windows read. */
function reading<T>(x: tf.Tensor, axes: Axes, compute: (x: tf.Tensor, axes: Axes) => T): T {
  const begin = skips(axes);
  const read = begin.every((skip) => skip === 0)
    ? x
    : tf.slice(
        x,
        begin,
        x.shape.map((dim, axis) => dim - begin[axis]!),
      );
  return compute(read, unskipped(axes));
}

/** The result of `compute` for the cells that windows read, and zeros for the others. */
function writing(axes: Axes, compute: (axes: Axes) => tf.Tensor): tf.Tensor {
  const begin = skips(axes);
  const cells = compute(unskipped(axes));
  return begin.every((skip) => skip === 0)
    ? cells
    : tf.pad(
        cells,
        begin.map((skip): [number, number] => [skip, 0]),
      );
}

/** Attributes of a kernel over images with these windows. */
const imageAttrs = (height: Windows, width: Windows): RawAttrs => ({
  strides: [height.stride, width.stride],
  dilations: [height.dilation, width.dilation],
  pad: [
    [0, 0],
    [height.before, behind(height)],
    [width.before, behind(width)],
    [0, 0],
  ],
});

/** x [B, D, H, W, C] as images [B * windows, H, W, taps * C]: the cells along the depth that each window reads. */
function depthAmongChannels(x: tf.Tensor, depth: Windows): tf.Tensor {
  const [batch, , height, width, channels] = x.shape as [number, number, number, number, number];
  const pads = [0, 1, 0, 0, 0].map((isDepth): [number, number] =>
    isDepth ? [depth.before, behind(depth)] : [0, 0],
  );
  const wide = tf.pad(x, pads);
  const taps = Array.from({ length: depth.taps }, (_, tap) =>
    cellsFrom(wide, 1, { begin: tap * depth.dilation, step: depth.stride, count: depth.count }),
  );
  return tf.reshape(tf.concat(taps, -1), [batch * depth.count, height, width, depth.taps * channels]);
}

/** filter [depth, height, width, C, O] as [height, width, depth * C, O]. */
function imageFilter(filter: tf.Tensor): tf.Tensor {
  const [depth, height, width, channels, outputs] = filter.shape as [number, number, number, number, number];
  return tf.reshape(tf.transpose(filter, [1, 2, 0, 3, 4]), [height, width, depth * channels, outputs]);
}

/** [B, D, ...] as [B * D, ...]. */
const asImages = (x: tf.Tensor): tf.Tensor => tf.reshape(x, [-1, ...x.shape.slice(2)]);

const float = (x: tf.Tensor): tf.Tensor => tf.cast(x, 'float32');

const conv3d: Decomposition = ({ x, filter }, attrs) => {
  const axes = volumeWindows(x!.shape, filter!.shape.slice(0, 3), attrs);
  const product = reading(float(x!), axes, (volume, [depth, height, width]) =>
    runKernel(
      'Conv2D',
      { x: depthAmongChannels(volume, depth), filter: imageFilter(float(filter!)) },
      imageAttrs(height, width),
    ),
  );
  const shape = [x!.shape[0]!, ...axes.map(({ count }) => count), filter!.shape[4]!];
  return tf.cast(tf.reshape(product, shape), x!.dtype);
};

const conv3dByInput: Decomposition = ({ dy, filter }, attrs) => {
  const inputShape = attrs.inputShape as [number, number, number, number, number];
  const [batch, , , , channels] = inputShape;
  return writing(volumeWindows(inputShape, filter!.shape.slice(0, 3), attrs), ([depth, height, width]) => {
    const cells = runKernel(
      'Conv2DBackpropInput',
      { dy: asImages(dy!), filter: imageFilter(filter!) },
      {
        ...imageAttrs(height, width),
        inputShape: [batch * depth.count, height.size, width.size, depth.taps * channels],
      },
    );
    const byWindow = tf.reshape(cells, [batch, depth.count, height.size * width.size, depth.taps * channels]);
    const taps = tf.split(byWindow, depth.taps, -1);
    return tf.reshape(scatterTaps(taps, 1, depth), [batch, depth.size, height.size, width.size, channels]);
  });
};

const conv3dByFilter: Decomposition = ({ x, dy }, attrs) => {
  const shape = attrs.filterShape as [number, number, number, number, number];
  const [depthTaps, down, across, channels, outputs] = shape;
  const axes = volumeWindows(x!.shape, shape.slice(0, 3), attrs);
  const gradient = reading(x!, axes, (volume, [depth, height, width]) =>
    runKernel(
      'Conv2DBackpropFilter',
      { x: depthAmongChannels(volume, depth), dy: asImages(dy!) },
      { ...imageAttrs(height, width), filterShape: [down, across, depthTaps * channels, outputs] },
    ),
  );
  return tf.transpose(tf.reshape(gradient, [down, across, depthTaps, channels, outputs]), [2, 0, 1, 3, 4]);
};

const windowOf = ({ filterSize }: RawAttrs): number[] =>
  typeof filterSize === 'number' ? [filterSize, filterSize, filterSize] : filterSize;

const poolAttrs = (height: Windows, width: Windows): RawAttrs => ({
  ...imageAttrs(height, width),
  filterSize: [height.taps, width.taps],
});

/** The averages [B, D, H, W, C], but 0, as in tfjs, for windows of padding alone. */
function zeroOfPadding(averages: tf.Tensor, axes: Axes): tf.Tensor {
  const counts = axes.map(cellCounts);
  if (counts.flat().every((count) => count > 0)) return averages;
  const [down, across, along] = counts as [number[], number[], number[]];
  const isPadding = down.flatMap((d) => across.flatMap((h) => along.map((w) => d * h * w === 0)));
  const shape = [1, ...counts.map(({ length }) => length), 1];
  return tf.where(tf.tensor(isPadding, shape, 'bool'), tf.zerosLike(averages), averages);
}

/** Poolings of volumes: over height and width, then over the depth, where these are one axis. */
function poolings(kernel: 'MaxPool' | 'AvgPool') {
  const across = (x: tf.Tensor, [, height, width]: Axes): tf.Tensor =>
    runKernel(kernel, { x: asImages(x) }, poolAttrs(height, width));
  /** Images [B * D, H', W', C] as [B, D, H' * W', C]. */
  const withDepth = (images: tf.Tensor, [{ size }, height, width]: Axes): tf.Tensor =>
    tf.reshape(images, [-1, size, height.count * width.count, images.shape[3]!]);
  const depthAttrs = ([depth, height, width]: Axes): RawAttrs =>
    poolAttrs(depth, still(height.count * width.count));

  const pool: Decomposition = ({ x }, attrs) => {
    const windows = volumeWindows(x!.shape, windowOf(attrs), { ...attrs, dilations: 1 });
    const pooled = reading(float(x!), windows, (volume, axes) =>
      runKernel(kernel, { x: withDepth(across(volume, axes), axes) }, depthAttrs(axes)),
    );
    const shape = [x!.shape[0]!, ...windows.map(({ count }) => count), x!.shape[4]!];
    const result = tf.reshape(pooled, shape);
    return kernel === 'AvgPool' ? zeroOfPadding(result, windows) : result;
  };

  const gradient: Decomposition = ({ dy, input, output }, attrs) => {
    const windows = volumeWindows(input!.shape, windowOf(attrs), { ...attrs, dilations: 1 });
    const dx = reading(float(input!), windows, (volume, axes) => {
      const rows = across(volume, axes);
      const pairs = (of: tf.Tensor): tf.Tensor => {
        const [batch, depth, height, width, channels] = of.shape as [number, number, number, number, number];
        return tf.reshape(of, [batch, depth, height * width, channels]);
      };
      const inputs = { dy: pairs(dy!), input: withDepth(rows, axes), output: pairs(output ?? dy!) };
      const down = runKernel(`${kernel}Grad`, inputs, depthAttrs(axes));
      const images = { dy: tf.reshape(down, rows.shape), input: asImages(volume), output: rows };
      const cells = runKernel(`${kernel}Grad`, images, poolAttrs(axes[1], axes[2]));
      return tf.reshape(cells, volume.shape);
    });
    return writing(windows, () => dx);
  };
  return { pool, gradient };
}

const [max, average] = [poolings('MaxPool'), poolings('AvgPool')];

export const volumeDecompositions: DecompositionTable = {
  Conv3D: conv3d,
  Conv3DBackpropInputV2: conv3dByInput,
  Conv3DBackpropFilterV2: conv3dByFilter,
  MaxPool3D: max.pool,
  MaxPool3DGrad: max.gradient,
  AvgPool3D: average.pool,
  AvgPool3DGrad: average.gradient,
};

/** tfjs divides by all cells of a window, even where some are padding. */
differentiate('AvgPool3D', average.pool, ['x']);
/** tfjs's finds the maximum of windows only where height and width are equal. */
differentiate('MaxPool3D', max.pool, ['x']);
