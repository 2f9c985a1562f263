/** @file Transposed and separable convolutions over images. */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { sub } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { Conv2D, paddingField, pairField } from './convolutions.js';

const size = () => z.int().positive();

/**
 * The gradient of a convolution by its input, as a layer (tf.nn.conv2d_transpose): each input cell adds w [height, width, O, I]
 * times it to the outputs around, `filterStride` apart; plus b [O].
 */
export class Conv2DTranspose extends BaseLayer.with({
  filterShape: z
    .tuple([size(), size(), size(), size()])
    .describe('Height, width, depth of the output and depth of the input.'),
  filterStride: pairField()
    .default([1, 1])
    .describe('Cells of the output for each of the input, down and across.'),
  bias: z.boolean().default(false).describe('Whether a bias is added.'),
  biasInit: z.number().default(0).describe('Initial value of every element of the bias.'),
  padding: paddingField,
}) {
  declare readonly theta: Theta<'w' | 'b'>;

  protected override setup(): void {
    const { filterShape, bias, biasInit } = this.hp;
    this.createVariable('w', { shape: filterShape, fanInAxes: [0, 1, 3], fanOutAxes: [0, 1, 2] });
    if (bias) this.createVariable('b', { shape: [filterShape[2]], init: constantInit(biasInit) });
  }

  /**
   * [B, H, W, I] to [B, H', W', O]: H' is H · stride with 'SAME', and larger by what filters reach beyond it with 'VALID'.
   *
   * @throws LayerError for inputs of another depth
   */
  fprop(inputs: Tensor): Tensor {
    const { filterShape, filterStride, bias, padding } = this.hp;
    const [batch, height, width, depth] = inputs.shape as [number, number, number, number];
    if (inputs.rank !== 4 || depth !== filterShape[3])
      throw this.error(
        `inputs [${inputs.shape.join(', ')}] do not fit filterShape [${filterShape.join(', ')}]: expected ` +
          `[B, H, W, ${filterShape[3]}].`,
      );
    const cells = (axis: 0 | 1, size: number): number => {
      const beyond = padding === 'VALID' ? Math.max(filterShape[axis] - filterStride[axis], 0) : 0;
      return size * filterStride[axis] + beyond;
    };
    const outputs = tf.conv2dTranspose(
      inputs as tf.Tensor4D,
      this.theta.w as tf.Tensor4D,
      [batch, cells(0, height), cells(1, width), filterShape[2]],
      [...filterStride],
      padding === 'SAME' ? 'same' : 'valid',
    );
    return this.shard(bias ? tf.add(outputs, this.theta.b) : outputs);
  }
}

/** A depthwise convolution, then one over single cells that mixes the channels (Chollet, 2017). */
export class SeparableConv2D extends BaseLayer.with({
  filterShape: z
    .tuple([size(), size(), size(), size()])
    .describe('Height, width, depth of the input and depth of the output.'),
  channelMultiplier: size().default(1).describe('Outputs of the depthwise convolution for each channel.'),
  filterStride: pairField().default([1, 1]).describe('Cells from one window to the next, down and across.'),
  dilations: pairField()
    .default([1, 1])
    .describe('Cells from one tap of a window to the next, down and across.'),
  padding: paddingField,
  bias: z.boolean().default(false).describe('Whether a bias is added to the outputs.'),
  depthwiseTpl: sub(Conv2D).describe('The convolution of each channel.'),
  pointwiseTpl: sub(Conv2D).describe('The convolution over single cells.'),
}) {
  #depthwise!: Conv2D;
  #pointwise!: Conv2D;

  protected override setup(): void {
    const {
      filterShape,
      channelMultiplier,
      filterStride,
      dilations,
      padding,
      bias,
      depthwiseTpl,
      pointwiseTpl,
    } = this.hp;
    const [height, width, inputDims, outputDims] = filterShape;
    const between = inputDims * channelMultiplier;
    this.#depthwise = this.createChild('depthwise', depthwiseTpl, {
      ...{ filterStride, dilations, padding },
      filterShape: [height, width, 1, between],
    });
    this.#pointwise = this.createChild('pointwise', pointwiseTpl, {
      filterShape: [1, 1, between, outputDims],
      bias,
    });
  }

  /** As Conv2D.fprop. */
  fprop(inputs: Tensor): Tensor {
    return this.#pointwise.fprop(this.#depthwise.fprop(inputs));
  }
}
