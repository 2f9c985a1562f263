/** @file StackingOverTime: frames beside each other in one vector (praxis/layers/linears.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { BaseLayer } from './core/base.js';

/** Frames and their paddings, 1 for padding. */
interface Frames {
  /** [B, T, D]. */
  readonly outputs: Tensor;
  /** [B, T]. */
  readonly paddings: Tensor;
}

/**
 * Every `stride`-th frame with the `leftContext` before it and the `rightContext` after it, side by side in one vector; zeros, or
 * copies of the first and the last frame, stand where the sequence ends. Frames 4 1 9 3 5 2 8 with one on each side and a stride
 * of 3 give 0 4 1, 9 3 5 and 2 8 0.
 */
export class StackingOverTime extends BaseLayer.with({
  leftContext: z.int().min(0).default(0).describe('Frames before each.'),
  rightContext: z.int().min(0).default(0).describe('Frames after each.'),
  stride: z.int().positive().default(1).describe('Frames from an output to the next.'),
  padWithLeftFrame: z
    .boolean()
    .default(false)
    .describe('Whether the first frame stands before the sequence, not zeros.'),
  padWithRightFrame: z
    .boolean()
    .default(false)
    .describe('Whether the last frame stands after the sequence, not zeros.'),
  paddingReduceOption: z
    .enum(['reduce_min', 'reduce_max'])
    .default('reduce_min')
    .describe('Whether an output is padding where all of its frames are, or where any is.'),
}) {
  /** Frames in an output. */
  get windowSize(): number {
    return this.hp.leftContext + this.hp.rightContext + 1;
  }

  /**
   * @param inputs [B, T, D].
   * @param paddings [B, T], 1 for padding; none where absent.
   * @returns [B, ceil(T / stride), windowSize D], and paddings [B, ceil(T / stride)].
   */
  fprop(inputs: Tensor, paddings: Tensor = tf.zeros(inputs.shape.slice(0, 2))): Frames {
    const outputs = tf.concat(this.#windows(inputs, 0), 2);
    const stacked = tf.stack(this.#windows(paddings, 1), 2) as Tensor;
    const { paddingReduceOption } = this.hp;
    return {
      outputs,
      paddings: paddingReduceOption === 'reduce_min' ? tf.min(stacked, 2) : tf.max(stacked, 2),
    };
  }

  /**
   * The frames that outputs of `fprop` were made of, [B, windowSize + (T' - 1) stride - leftContext, D] from
   * [B, T', windowSize D]: those after the sequence's end are the zeros or copies that stood there.
   *
   * @throws LayerError where the stride leaves frames out
   */
  unstack(stacked: Tensor): Tensor {
    const { windowSize } = this;
    const { stride, leftContext } = this.hp;
    if (stride > windowSize)
      throw this.error(
        `a stride of ${stride} leaves out frames of windows of ${windowSize}: nothing has them to unstack.`,
      );
    const [batch, windows, depth] = stacked.shape as [number, number, number];
    const frames = tf.reshape(stacked, [batch, windows, windowSize, depth / windowSize]);
    // Of each window the first `stride` frames, of the last one all.
    const begun = tf.slice(frames, [0, 0, 0, 0], [batch, windows - 1, stride, -1]);
    const last = tf.slice(frames, [0, windows - 1, 0, 0], [batch, 1, windowSize, -1]);
    const all = tf.concat(
      [begun, last].map((x) => tf.reshape(x, [batch, -1, depth / windowSize])),
      1,
    );
    return tf.slice(all, [0, leftContext, 0], [batch, -1, -1]);
  }

  /** A tensor [B, ceil(T / stride), …] for each place in the window, from [B, T, …]. */
  #windows(x: Tensor, outside: number): Tensor[] {
    const { leftContext, rightContext, stride, padWithLeftFrame, padWithRightFrame } = this.hp;
    const [batch, time, ...rest] = x.shape as [number, number, ...number[]];
    const edge = (size: number, copies: boolean, at: number): Tensor =>
      copies && time > 0
        ? tf.tile(tf.slice(x, [0, at], [batch, 1]), [1, size, ...rest.map(() => 1)])
        : tf.fill([batch, size, ...rest], outside);
    const padded = tf.concat(
      [edge(leftContext, padWithLeftFrame, 0), x, edge(rightContext, padWithRightFrame, time - 1)].filter(
        ({ shape }) => shape[1]! > 0,
      ),
      1,
    );
    return Array.from({ length: this.windowSize }, (_, place) =>
      tf.stridedSlice(padded, [0, place], [batch, place + time], [1, stride]),
    );
  }
}
