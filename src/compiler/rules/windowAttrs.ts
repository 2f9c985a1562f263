/** @file Places of the windows of a convolution or a pooling, along height and width. */
import type { Attrs } from '../ir.js';
import { CompilerError, formatSpec, type Shape, type TensorSpec } from '../tensors.js';
import * as tf from '../tfjs.js';
import type { RawAttrs } from './rule.js';

/** Tap t of window i lies at `i * stride + t * dilation - before` of an axis; cells outside of it are padding. */
export interface Windows {
  /** Cells of the axis. */
  readonly size: number;
  /** Windows. */
  readonly count: number;
  /** Taps of a window. */
  readonly taps: number;
  readonly stride: number;
  readonly dilation: number;
  /** Cells of padding in front. */
  readonly before: number;
}

const FIELDS = ['size', 'count', 'taps', 'stride', 'dilation', 'before'] as const;

/** Height and width as attributes of a node. */
const toAttrs = (axes: readonly Windows[]): Attrs =>
  Object.fromEntries(FIELDS.map((field) => [field, axes.map((axis) => axis[field])]));

/** The windows along height and width that a node's attributes tell. */
export const windowsOf = (attrs: Attrs): readonly [height: Windows, width: Windows] =>
  [0, 1].map((i) =>
    Object.fromEntries(FIELDS.map((field) => [field, (attrs[field] as readonly number[])[i]!])),
  ) as unknown as [Windows, Windows];

/** What the compiler does not take, told before shapes are worked out. */
function check(name: string, { dataFormat, dimRoundingMode }: RawAttrs): void {
  if (dataFormat !== undefined && dataFormat !== 'NHWC') {
    throw new CompilerError(
      `${name} with dataFormat '${dataFormat}' cannot be compiled; transpose the input to [batch, height, width, channels], which is 'NHWC'.`,
    );
  }
  if (dimRoundingMode !== undefined && dimRoundingMode !== null) {
    throw new CompilerError(
      `${name} with dimRoundingMode '${dimRoundingMode}' cannot be compiled; give the padding of every side instead, as [[0, 0], [top, bottom], [left, right], [0, 0]].`,
    );
  }
}

/**
 * The attributes of windows over an input [batch, height, width, channels], as tfjs's kernels have them.
 *
 * @param name for messages.
 * @param window height and width of a window.
 * @throws CompilerError where no window fits.
 */
export function windowAttrs(
  name: string,
  inputShape: Shape,
  window: readonly [number, number],
  raw: RawAttrs,
): Attrs {
  check(name, raw);
  const [height, width] = window;
  const info = tf.backend_util.computeConv2DInfo(
    inputShape as [number, number, number, number],
    [height, width, 1, 1],
    raw.strides,
    raw.dilations ?? 1,
    raw.pad,
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
