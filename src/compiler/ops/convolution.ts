/** @file Convolutions as matrix products of windows and filters; depthwise ones as sums over taps. */
import { sizeOf } from '../program/tensors.js';
import { convolutions } from '../rules/convolutionRules.js';
import { defineKernels } from '../rules/index.js';
import type { Composite } from '../rules/operation.js';
import { type Windows, windowsOf } from '../rules/windowAttrs.js';
import * as tf from '../tfjs/tfjs.js';
import { byChannels } from './depthwise.js';
import {
  allTaps,
  cellsFrom,
  cellsOfPhase,
  gatherWindows,
  interleave,
  type Phase,
  padByWindow,
  padded,
  paddingByWindow,
  phasesOf,
  type Taps,
  tapCells,
} from './windows.js';
import { byTransforms } from './winograd.js';

type Decompose = Composite['decompose'];

type Pair = readonly [Windows, Windows];

/** The windows of x [B, H, W, C] as rows [B * windows, taps * C]. */
function windowRows(x: tf.Tensor, axes: Pair): tf.Tensor {
  const [height, width] = axes;
  const windows = gatherWindows(padded(x, axes, 0), allTaps(height), allTaps(width));
  return tf.reshape(windows, [-1, windows.shape.at(-1)!]);
}

const asRows = (x: tf.Tensor): tf.Tensor => tf.reshape(x, [-1, x.shape.at(-1)!]);

const convolve: Decompose = ([x, filter], attrs) => {
  const [height, width] = windowsOf(attrs);
  const [rows, columns] = [windowRows(x!, [height, width]), filter!.shape[3]!];
  const product = tf.matMul(rows, tf.reshape(filter!, [-1, columns]));
  return [tf.reshape(product, [x!.shape[0]!, height.count, width.count, columns])];
};

const filterGradient: Decompose = ([x, dy], attrs) => {
  const product = tf.matMul(windowRows(x!, windowsOf(attrs)), asRows(dy!), true);
  return [tf.reshape(product, attrs.filterShape as number[])];
};

/** The taps of a phase as windows over padded values by window. */
function tapsOfPhase({ taps }: Phase, axis: Windows): Taps {
  const shifts = taps.map(({ shift }) => shift);
  return {
    begin: paddingByWindow(axis)[0] + shifts[0]!,
    step: shifts.length > 1 ? shifts[1]! - shifts[0]! : 1,
    taps: shifts.length,
    stride: 1,
    count: cellsOfPhase(axis),
  };
}

/** A filter's taps of one phase, in the phase's order. */
function filterOfPhase(filter: tf.Tensor, axis: number, { taps }: Phase): tf.Tensor {
  const size = filter.shape[axis]!;
  const turned = size === 1 ? filter : tf.reverse(filter, axis);
  const step = taps.length > 1 ? taps[0]!.tap - taps[1]!.tap : 1;
  return cellsFrom(turned, axis, { begin: size - 1 - taps[0]!.tap, step, count: taps.length });
}

/** Computes the cells [B, H / strides, W / strides, C] of each pair of phases, and interleaves them. */
function byPhase(
  [height, width]: Pair,
  shape: readonly number[],
  cells: (down: Phase, across: Phase) => tf.Tensor,
): tf.Tensor {
  const rows = phasesOf(height).map((down) => {
    const columns = phasesOf(width).map((across) =>
      down.taps.length > 0 && across.taps.length > 0
        ? cells(down, across)
        : tf.zeros([shape[0]!, cellsOfPhase(height), cellsOfPhase(width), shape[3]!]),
    );
    return interleave(columns, 2, width.size);
  });
  return interleave(rows, 1, height.size);
}

/** The outputs [begin, end) to which a tap of a stride of 1 gives cells of its input, and the cells before the first one. */
function reachOf({ size, count, before, dilation }: Windows, tap: number) {
  const shift = before - tap * dilation;
  const [begin, end] = [Math.max(0, shift), Math.min(count, size + shift)];
  return { begin, end, inFront: begin - shift, behind: size - (end - shift) };
}

/**
 * dy times the filter of each tap, added up where the taps' cells are: of few windows, that is less work than turning the
 * filter, whose rows then would be the taps in reverse.
 */
function inputGradientByTaps(dy: tf.Tensor, filter: tf.Tensor, axes: Pair): tf.Tensor {
  const [batch, down, across] = dy.shape as [number, number, number];
  const [channels, filters] = filter.shape.slice(2) as [number, number];
  const product = tf.matMul(asRows(dy), tf.reshape(filter, [-1, filters]), false, true);
  const taps = tf.reshape(product, [batch, down, across, -1]);
  const terms = forTaps(axes, (row, column) => {
    const [y, x] = [reachOf(axes[0], row), reachOf(axes[1], column)];
    if (y.begin >= y.end || x.begin >= x.end) return [];
    const first = (row * axes[1].taps + column) * channels;
    const cells = tf.slice(
      taps,
      [0, y.begin, x.begin, first],
      [batch, y.end - y.begin, x.end - x.begin, channels],
    );
    const none: [number, number] = [0, 0];
    return [tf.pad(cells, [none, [y.inFront, y.behind], [x.inFront, x.behind], none])];
  });
  return sumOf(terms.flat());
}

/** Each phase of cells is a convolution of dy by the taps that read it, which avoids products with inserted zeros. */
const inputGradient: Decompose = ([dy, filter], attrs) => {
  const axes = windowsOf(attrs);
  const shape = attrs.inputShape as readonly number[];
  const isFew = sizeOf(dy!.shape.slice(0, 3)) <= filter!.shape[3]!;
  if (isFew && axes.every(({ taps, stride }) => taps > 1 && stride === 1))
    return [inputGradientByTaps(dy!, filter!, axes)];
  const [height, width] = axes;
  const wide = padByWindow(dy!, axes);
  const cells = (down: Phase, across: Phase): tf.Tensor => {
    const windows = gatherWindows(wide, tapsOfPhase(down, height), tapsOfPhase(across, width));
    const taps = filterOfPhase(filterOfPhase(filter!, 0, down), 1, across);
    const columns = tf.reshape(tf.transpose(taps, [0, 1, 3, 2]), [-1, shape[3]!]);
    const product = tf.matMul(asRows(windows), columns);
    return tf.reshape(product, [shape[0]!, cellsOfPhase(height), cellsOfPhase(width), shape[3]!]);
  };
  return [byPhase(axes, shape, cells)];
};

/** The filter of one tap [C, M], or [C * M] for multiplying [..., C * M]. */
const filterOfTap = (filter: tf.Tensor, down: number, across: number): tf.Tensor =>
  tf.reshape(tf.slice(filter, [down, across, 0, 0], [1, 1, -1, -1]), [filter.shape[2]!, filter.shape[3]!]);

const sumOf = (terms: readonly tf.Tensor[]): tf.Tensor => terms.reduce((sum, term) => tf.add(sum, term));

/** Maps the taps of a window, in row-major order. */
const forTaps = <T>([height, width]: Pair, f: (down: number, across: number) => T): T[] =>
  Array.from({ length: height.taps * width.taps }, (_, i) => f(Math.floor(i / width.taps), i % width.taps));

/** The cells of a padded x that one tap reads. */
const cellsOfTap = (x: tf.Tensor, [height, width]: Pair, down: number, across: number): tf.Tensor =>
  tapCells(tapCells(x, 1, allTaps(height), down), 2, allTaps(width), across);

const convolveChannels: Decompose = ([x, filter], attrs) => {
  const axes = windowsOf(attrs);
  const wide = padded(x!, axes, 0);
  const [channels, multiplier] = filter!.shape.slice(2) as [number, number];
  const terms = forTaps(axes, (down, across) => {
    const cells = cellsOfTap(wide, axes, down, across);
    // Every channel is multiplied by each of its filters.
    const each = multiplier === 1 ? cells : tf.expandDims(cells, -1);
    const taps = filterOfTap(filter!, down, across);
    return tf.mul(each, multiplier === 1 ? tf.reshape(taps, [channels]) : taps);
  });
  const [height, width] = axes;
  return [tf.reshape(sumOf(terms), [x!.shape[0]!, height.count, width.count, channels * multiplier])];
};

/** dy [B, H, W, C * M] as [B, H, W, C, M]. */
const byFilter = (dy: tf.Tensor, channels: number): tf.Tensor =>
  tf.reshape(dy, [...dy.shape.slice(0, 3), channels, dy.shape[3]! / channels]);

const channelInputGradient: Decompose = ([dy, filter], attrs) => {
  const axes = windowsOf(attrs);
  const shape = attrs.inputShape as readonly number[];
  const wide = padByWindow(dy!, axes);
  const cells = (down: Phase, across: Phase): tf.Tensor => {
    const [height, width] = [tapsOfPhase(down, axes[0]), tapsOfPhase(across, axes[1])];
    const terms = down.taps.flatMap(({ tap: row }, i) =>
      across.taps.map(({ tap: column }, j) => {
        const values = tapCells(tapCells(wide, 1, height, i), 2, width, j);
        return tf.mul(byFilter(values, shape[3]!), filterOfTap(filter!, row, column));
      }),
    );
    return tf.sum(sumOf(terms), -1);
  };
  return [byPhase(axes, shape, cells)];
};

const channelFilterGradient: Decompose = ([x, dy], attrs) => {
  const axes = windowsOf(attrs);
  const shape = attrs.filterShape as number[];
  const wide = padded(x!, axes, 0);
  const each = byFilter(dy!, shape[2]!);
  const taps = forTaps(axes, (down, across) =>
    tf.sum(tf.mul(tf.expandDims(cellsOfTap(wide, axes, down, across), -1), each), [0, 1, 2]),
  );
  return [tf.reshape(tf.stack(taps), shape)];
};

defineKernels({
  /** x [B, H, W, C] with filter [height, width, C, O]: [B, H', W', O]. */
  ...convolutions('Conv2D', {
    call: 'conv2d',
    outChannels: (filter) => filter[3]!,
    summed: (filter) => filter[2]!,
    isProduct: true,
    factors: ['b..c', '..co', 'b..o'],
    forward: {
      decompose: convolve,
      device: byTransforms('Conv2D', 'convolution', { inRows: 1, usesWorkspace: true }),
    },
    byInput: {
      decompose: inputGradient,
      device: byTransforms('Conv2DBackpropInput', 'inputGradient', { inRows: 1, usesWorkspace: true }),
    },
    byFilter: {
      decompose: filterGradient,
      device: byTransforms('Conv2DBackpropFilter', 'filterGradient', { inRows: 2, usesWorkspace: true }),
    },
  }),
  /**
   * x [B, H, W, C] with filter [height, width, C, M], each channel separately: [B, H', W', C * M]. It is no matrix
   * product, and so float32 in every precision.
   */
  ...convolutions('DepthwiseConv2dNative', {
    call: 'depthwiseConv2d',
    outChannels: (filter) => filter[2]! * filter[3]!,
    summed: () => 1,
    isProduct: false,
    // With several filters a channel, channels of the output are no parts of those of x.
    factors: ['b...', '....', 'b...'],
    forward: {
      decompose: convolveChannels,
      device: byChannels('depthwise', { inRows: 1, contiguous: [1] }),
    },
    byInput: {
      decompose: channelInputGradient,
      device: byChannels('depthwiseInput', { inRows: 1, contiguous: [1] }),
    },
    byFilter: {
      decompose: channelFilterGradient,
      device: byChannels('depthwiseFilter', { inRows: 2, usesWorkspace: true }),
    },
  }),
});
