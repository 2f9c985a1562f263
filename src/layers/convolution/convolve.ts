/** @file Convolutions over one to three axes, by groups of channels, as TensorFlow.js's over images. */
import { type Tensor, tf } from '../../compiler/index.js';

/** Windows along each of the axes. */
export interface Windows {
  readonly stride: readonly number[];
  readonly dilations: readonly number[];
  /** Cells of padding before and after. */
  readonly pads: readonly (readonly [number, number])[];
}

type Image = tf.Tensor4D;

/**
 * x [B, ...cells, D] convolved with filter [...window, I, O]: [B, ...windows, O]. Where D is a multiple of I, each group of I
 * channels gives its share of the outputs; groups of one channel are a depthwise convolution.
 */
export function convolve(x: Tensor, filter: Tensor, windows: Windows): Tensor {
  switch (x.rank) {
    case 3:
      return overTime(x, filter, windows);
    case 4:
      return overImages(x, filter, windows);
    default:
      return overVolumes(x, filter, windows);
  }
}

/** Sequences are images of width 1. */
function overTime(x: Tensor, filter: Tensor, { stride, dilations, pads }: Windows): Tensor {
  const [batch, time, depth] = x.shape as [number, number, number];
  const [taps, groupDepth, outputs] = filter.shape as [number, number, number];
  const image = overImages(
    tf.reshape(x, [batch, time, 1, depth]),
    tf.reshape(filter, [taps, 1, groupDepth, outputs]),
    { stride: [...stride, 1], dilations: [...dilations, 1], pads: [...pads, [0, 0]] },
  );
  return tf.squeeze(image, [2]);
}

function overImages(x: Tensor, filter: Tensor, { stride, dilations, pads }: Windows): Tensor {
  const [height, width, groupDepth, outputs] = filter.shape as [number, number, number, number];
  const depth = x.shape[3]!;
  const across = stride as [number, number];
  const between = dilations as [number, number];
  const around = [[0, 0], ...pads, [0, 0]] as Parameters<typeof tf.conv2d>[3];
  if (groupDepth === 1 && depth > 1) {
    const each = tf.reshape(filter, [height, width, depth, outputs / depth]);
    return tf.depthwiseConv2d(x as Image, each as Image, across, around, 'NHWC', between);
  }
  const one = (x: Tensor, filter: Tensor): Tensor =>
    tf.conv2d(x as Image, filter as Image, across, around, 'NHWC', between);
  if (groupDepth === depth) return one(x, filter);
  const groups = depth / groupDepth;
  const filters = tf.split(filter, groups, 3);
  return tf.concat(
    tf.split(x, groups, 3).map((part, i) => one(part, filters[i]!)),
    3,
  );
}

/** The sum over the taps of time of convolutions of frames. */
function overVolumes(x: Tensor, filter: Tensor, { stride, dilations, pads }: Windows): Tensor {
  const [batch, time, ...frame] = x.shape as [number, number, number, number, number];
  const [taps] = filter.shape as [number];
  const [before, after] = pads[0]!;
  const reach = (taps - 1) * dilations[0]!;
  const count = Math.floor((before + time + after - reach - 1) / stride[0]!) + 1;
  const wide = tf.pad(x, [[0, 0], [before, after], ...frame.map((): [number, number] => [0, 0])]);
  const rest = { stride: stride.slice(1), dilations: dilations.slice(1), pads: pads.slice(1) };
  const filters = tf.unstack(filter);
  const terms = filters.map((taps, i) => {
    const begin = i * dilations[0]!;
    const end = begin + (count - 1) * stride[0]! + 1;
    const frames = tf.stridedSlice(
      wide,
      [0, begin, 0, 0, 0],
      [batch, end, ...frame],
      [1, stride[0]!, 1, 1, 1],
    );
    return overImages(tf.reshape(frames, [batch * count, ...frame]), taps, rest);
  });
  const sum = terms.reduce((sum, term) => tf.add(sum, term));
  return tf.reshape(sum, [batch, count, ...sum.shape.slice(1)]);
}
