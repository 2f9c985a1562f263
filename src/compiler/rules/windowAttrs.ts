/** @file Window positions of convolutions and poolings, along height and width. */
import type { Attrs } from '../program/ir.js';
import { CompilerError, formatSpec, type Shape, type TensorSpec } from '../program/tensors.js';
import * as tf from '../tfjs/tfjs.js';
import { expects, type RawAttrs } from './operation.js';

/**
 * Windows of an axis: tap t of window i is at `i * stride + t * dilation - before`; cells outside of the axis are
 * padding.
 */
export interface Windows {
  /** Cells of the axis. */
  readonly size: number;
  /** Number of windows. */
  readonly count: number;
  /** Taps per window. */
  readonly taps: number;
  readonly stride: number;
  readonly dilation: number;
  /** Padding cells in front. */
  readonly before: number;
}

const FIELDS = ['size', 'count', 'taps', 'stride', 'dilation', 'before'] as const;

/** Windows along height and width as node attributes. */
const toAttrs = (axes: readonly Windows[]): Attrs =>
  Object.fromEntries(FIELDS.map((field) => [field, axes.map((axis) => axis[field])]));

/** Windows along height and width from node attributes. */
export const windowsOf = (attrs: Attrs): readonly [height: Windows, width: Windows] =>
  [0, 1].map((i) =>
    Object.fromEntries(FIELDS.map((field) => [field, (attrs[field] as readonly number[])[i]!])),
  ) as unknown as [Windows, Windows];

/**
 * Windows over an input [batch, depth, height, width, channels], from the arguments of tfjs's kernels. `before` may be
 * negative: tfjs's 'same' leaves out cells in front where strides are larger than windows.
 *
 * @throws Misfit where no window fits.
 */
export function volumeWindows(
  inputShape: Shape,
  [depth, height, width]: readonly number[],
  { strides, dilations, pad, dimRoundingMode }: RawAttrs,
): readonly [depth: Windows, height: Windows, width: Windows] {
  const info = tf.backend_util.computeConv3DInfo(
    inputShape as [number, number, number, number, number],
    [depth!, height!, width!, 1, 1],
    strides,
    dilations ?? 1,
    pad,
    false,
    'channelsLast',
    dimRoundingMode ?? undefined,
  );
  const axis = (name: 'Depth' | 'Height' | 'Width', before: number): Windows => ({
    size: info[`in${name}`],
    count: info[`out${name}`],
    taps: info[`filter${name}`],
    stride: info[`stride${name}`],
    dilation: info[`dilation${name}`],
    before,
  });
  const { front, top, left } = info.padInfo;
  const axes = [axis('Depth', front), axis('Height', top), axis('Width', left)] as const;
  const sizes = inputShape.slice(1, 4);
  expects(
    axes.every(({ count }) => count >= 1),
    `windows of ${depth}x${height}x${width} cells that fit`,
    sizes,
  );
  return axes;
}

/**
 * Attributes of windows over an input [batch, height, width, channels], from the arguments of tfjs's kernels.
 *
 * @param name for messages.
 * @param window its height and width.
 * @throws CompilerError where no window fits.
 */
export function windowAttrs(
  name: string,
  inputShape: Shape,
  window: readonly [number, number],
  raw: RawAttrs,
): Attrs {
  const [height, width] = window;
  const info = tf.backend_util.computeConv2DInfo(
    inputShape as [number, number, number, number],
    [height, width, 1, 1],
    raw.strides,
    raw.dilations ?? 1,
    raw.pad,
    raw.dimRoundingMode ?? undefined,
  );
  const axes: Windows[] = [
    {
      size: info.inHeight,
      count: info.outHeight,
      taps: height,
      stride: info.strideHeight,
      dilation: info.dilationHeight,
      before: info.padInfo.top,
    },
    {
      size: info.inWidth,
      count: info.outWidth,
      taps: width,
      stride: info.strideWidth,
      dilation: info.dilationWidth,
      before: info.padInfo.left,
    },
  ];
  if (axes.some(({ count }) => count < 1)) {
    const input: TensorSpec = { shape: inputShape, dtype: 'float32' };
    throw new CompilerError(
      `${name}: a window of ${height}x${width} cells (${info.effectiveFilterHeight}x${info.effectiveFilterWidth} with dilation) does not fit into ${formatSpec(input)}.`,
    );
  }
  return toAttrs(axes);
}
