/** @file Depthwise convolutions over time (praxis/layers/convolutions.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { BaseLayer } from '../core/base.js';
import { selected, unpadded } from '../core/masks.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { convolve } from './convolve.js';

/** Base of the depthwise convolutions over time. */
export abstract class BaseDepthwiseConv1D extends BaseLayer.with({
  filterShape: z
    .tuple([z.int().positive(), z.int().positive(), z.int().positive()])
    .describe('Taps, depth of the input, and outputs of each of its channels.'),
  bias: z.boolean().default(false).describe('Whether a bias is added.'),
  biasInit: z.number().default(0).describe('Initial value of every element of the bias.'),
  isCausal: z
    .boolean()
    .default(false)
    .describe('Whether windows end at the place of their output, else they are around it.'),
  use2dConvWeightShape: z
    .boolean()
    .default(false)
    .describe("Whether the filter has a last axis of size 1, as Lingvo's checkpoints have."),
  rhsDilationRate: z.int().positive().default(1).describe('Steps from one tap of a window to the next.'),
}) {
  static override readonly isAbstract = true;
  /**
   * [B, T, channels] to [B, T, channels · outputs of each].
   *
   * @param paddings [B, T], 1 for padding, which counts as 0. Either size may be 1.
   * @throws LayerError for inputs or paddings of another shape
   */
  abstract fprop(inputs: Tensor, paddings?: Tensor): Tensor;
}

/** Each channel is convolved by filters of its own: inputs [B, T, channels] with w [taps, 1, outputs], plus b [outputs]. */
export class DepthwiseConv1D extends BaseDepthwiseConv1D {
  declare readonly theta: Theta<'w' | 'b'>;

  protected override setup(): void {
    const { bias, biasInit, use2dConvWeightShape } = this.hp;
    const shape = this.#shape;
    this.createVariable('w', { shape: use2dConvWeightShape ? [...shape, 1] : shape });
    if (bias) this.createVariable('b', { shape: [shape[2]], init: constantInit(biasInit) });
  }

  /** Of the filter. */
  get #shape(): readonly [number, number, number] {
    const [taps, channels, multiplier] = this.hp.filterShape;
    return [taps, 1, channels * multiplier];
  }

  override fprop(inputs: Tensor, paddings?: Tensor): Tensor {
    const { filterShape, bias, isCausal, rhsDilationRate: dilation } = this.hp;
    const [taps, channels] = filterShape;
    if (inputs.rank !== 3 || inputs.shape[2] !== channels)
      throw this.error(
        `inputs [${inputs.shape.join(', ')}] do not fit filterShape [${filterShape.join(', ')}]: expected ` +
          `[B, T, ${channels}].`,
      );
    const kept = paddings && tf.expandDims(unpadded(this, paddings, inputs.shape.slice(0, 2)), -1);
    const reach = (taps - 1) * dilation;
    const before = isCausal ? reach : Math.floor(reach / 2);
    const outputs = convolve(
      kept ? selected(inputs, kept) : inputs,
      tf.reshape(this.theta.w, [...this.#shape]),
      { stride: [1], dilations: [dilation], pads: [[before, reach - before]] },
    );
    return bias ? tf.add(outputs, this.theta.b) : outputs;
  }
}
