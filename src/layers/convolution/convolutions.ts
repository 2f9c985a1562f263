/** @file Convolutions over images, or over time and frequency (praxis/layers/convolutions.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { BaseLayer } from '../core/base.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';

/** Two positive integers, for height and width. */
export const pairField = () => z.tuple([z.int().positive(), z.int().positive()]);

/** Padding of windows at the borders. */
export const paddingField = z
  .enum(['SAME', 'VALID'])
  .default('SAME')
  .describe("Whether windows reach beyond the edges ('SAME') or lie within the input ('VALID').");

/** inputs [B, H, W, I] convolved with w [height, width, I, O], plus b [O]. */
export class Conv2D extends BaseLayer.with({
  filterShape: z
    .tuple([z.int().positive(), z.int().positive(), z.int().positive(), z.int().positive()])
    .describe('Height, width, depth of the input and depth of the output.'),
  filterStride: pairField().default([1, 1]).describe('Cells from one window to the next, down and across.'),
  dilations: pairField()
    .default([1, 1])
    .describe('Cells from one tap of a window to the next, down and across.'),
  bias: z.boolean().default(false).describe('Whether a bias is added.'),
  biasInit: z.number().default(0).describe('Initial value of every element of the bias.'),
  padding: paddingField,
  tfEquivalentPadding: z
    .boolean()
    .default(false)
    .describe(
      "Whether 'SAME' pads as TensorFlow does, by what the last window needs; else by the filter less one cell, half of it in front, whatever the stride.",
    ),
}) {
  declare readonly theta: Theta<'w' | 'b'>;

  protected override setup(): void {
    const { filterShape, filterStride, dilations, bias, biasInit } = this.hp;
    if (Math.max(...filterStride) > 1 && Math.max(...dilations) > 1) {
      throw this.error(
        `filterStride [${filterStride.join(', ')}] with dilations [${dilations.join(', ')}]: one of them has to be [1, 1].`,
      );
    }
    this.createVariable('w', { shape: filterShape });
    if (bias) this.createVariable('b', { shape: [filterShape[3]], init: constantInit(biasInit) });
  }

  /** [B, H, W, I] to [B, H', W', O], where 'SAME' has ceil(H / stride) rows and 'VALID' those whose windows fit. */
  fprop(inputs: Tensor): Tensor {
    const { filterStride, dilations, bias } = this.hp;
    const outputs = tf.conv2d(
      inputs as tf.Tensor4D,
      this.theta.w as tf.Tensor4D,
      [...filterStride],
      this.#pad(),
      'NHWC',
      [...dilations],
    );
    return bias ? tf.add(outputs, this.theta.b) : outputs;
  }

  #pad(): 'same' | 'valid' | [[0, 0], [number, number], [number, number], [0, 0]] {
    const { padding, tfEquivalentPadding, filterShape, dilations } = this.hp;
    if (padding === 'VALID') return 'valid';
    if (tfEquivalentPadding) return 'same';
    const around = (axis: 0 | 1): [number, number] => {
      const total = (filterShape[axis] - 1) * dilations[axis];
      return [Math.floor(total / 2), Math.ceil(total / 2)];
    };
    return [[0, 0], around(0), around(1), [0, 0]];
  }
}
