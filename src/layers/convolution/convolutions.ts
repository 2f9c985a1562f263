/** @file Convolutions over sequences, images and volumes (praxis/layers/convolutions.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { build, sub } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import { constantInit, WeightInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { BaseNormalization, IdentityNorm } from '../normalizations.js';
import { convolve } from './convolve.js';

const size = () => z.int().positive();

/** Two positive integers, for height and width. */
export const pairField = () => z.tuple([size(), size()]);

/** Padding of windows at the borders. */
export const paddingField = z
  .enum(['SAME', 'VALID'])
  .default('SAME')
  .describe("Whether windows reach beyond the edges ('SAME') or lie within the input ('VALID').");

const STRIDE = 'Cells from one window to the next along each axis.';
const DILATIONS = 'Cells from one tap of a window to the next along each axis.';

/** Windows of a convolution; filterShape is [...window, in, out]. */
interface ConvolutionWindows {
  readonly filterShape: readonly number[];
  readonly filterStride: readonly number[];
  readonly dilations: readonly number[];
}

/** Base of the convolutions: inputs [B, ...cells, I] with w [...window, I, O], plus b [O]. */
export abstract class BaseConvolution extends BaseLayer.with({
  bias: z.boolean().default(false).describe('Whether a bias is added.'),
  biasInit: z.number().default(0).describe('Initial value of every element of the bias.'),
  kernelInit: sub(WeightInit, null)
    .nullable()
    .default(null)
    .describe('Initial values of the filter; null: as other variables of the layer.'),
  padding: paddingField,
  tfEquivalentPadding: z
    .boolean()
    .default(false)
    .describe(
      "Whether 'SAME' pads as TensorFlow does, by what the last window needs; else by the filter less one cell, half of it in front, whatever the stride.",
    ),
  isCausal: z
    .boolean()
    .default(false)
    .describe(
      'Whether windows along the first axis, time, end at the place of their output: all padding stands in front.',
    ),
  weightNormTpl: sub(BaseNormalization, () => IdentityNorm.config()).describe(
    'What the filter goes through before it is used, such as WeightNormL2.',
  ),
}) {
  static override readonly isAbstract = true;
  declare readonly theta: Theta<'w' | 'b'>;
  #weightNorm!: BaseNormalization;

  protected abstract get windows(): ConvolutionWindows;

  protected override setup(): void {
    const { bias, biasInit, kernelInit, isCausal, padding, weightNormTpl } = this.hp;
    const { filterShape, filterStride, dilations } = this.windows;
    if (Math.max(...filterStride) > 1 && Math.max(...dilations) > 1) {
      const ones = filterStride.map(() => 1).join(', ');
      throw this.error(
        `filterStride [${filterStride.join(', ')}] with dilations [${dilations.join(', ')}]: one of them has to be [${ones}].`,
      );
    }
    if (isCausal && padding === 'VALID')
      throw this.error("isCausal pads in front, and padding is 'VALID'; expected 'SAME'.");
    const outputDims = filterShape.at(-1)!;
    this.createVariable('w', {
      shape: filterShape,
      contracting: filterShape.slice(0, -1).map((_, axis) => axis),
      ...(kernelInit && { init: build(kernelInit) }),
    });
    if (bias) this.createVariable('b', { shape: [outputDims], init: constantInit(biasInit) });
    this.#weightNorm = this.createChild('weight_norm', weightNormTpl, { dim: outputDims });
  }

  /**
   * [B, ...cells, D] to [B, ...windows, O], where 'SAME' has ceil(cells / stride) windows and 'VALID' those that fit. D is I, or
   * a multiple of it: then each group of I channels gives its share of the outputs, as in a depthwise convolution with I of 1.
   *
   * @throws LayerError for inputs that do not fit the filter
   */
  fprop(inputs: Tensor): Tensor {
    return this.convolved(inputs);
  }

  /** The convolution itself, for layers that do more. */
  protected convolved(inputs: Tensor): Tensor {
    const { filterStride, dilations } = this.windows;
    this.#check(inputs);
    const pads = filterStride.map((_, axis) => this.#pads(axis, inputs.shape[axis + 1]!));
    const filter = this.#weightNorm.fprop(this.theta.w);
    const outputs = convolve(inputs, filter, { stride: filterStride, dilations, pads });
    return this.shard(this.hp.bias ? tf.add(outputs, this.theta.b) : outputs);
  }

  /** Cells of padding before and after an axis of so many cells. */
  #pads(axis: number, cells: number): [number, number] {
    const { padding, tfEquivalentPadding, isCausal } = this.hp;
    const { filterStride } = this.windows;
    const [stride, reach] = [filterStride[axis]!, this.#reach(axis)];
    if (padding === 'VALID') return [0, 0];
    if (isCausal && axis === 0) return [reach, 0];
    const needed = Math.max((Math.ceil(cells / stride) - 1) * stride + reach + 1 - cells, 0);
    const total = tfEquivalentPadding && !isCausal ? needed : reach;
    return [Math.floor(total / 2), Math.ceil(total / 2)];
  }

  /** Cells from the first tap of a window to its last. */
  #reach(axis: number): number {
    const { filterShape, dilations } = this.windows;
    return (filterShape[axis]! - 1) * dilations[axis]!;
  }

  #check({ shape }: Tensor): void {
    const { filterShape } = this.windows;
    const [inputDims, outputDims] = filterShape.slice(-2) as [number, number];
    const groups = shape.at(-1)! / inputDims;
    const fits = shape.length === filterShape.length && Number.isInteger(groups) && groups > 0;
    if (!fits || outputDims % groups !== 0)
      throw this.error(
        `inputs [${shape.join(', ')}] do not fit filterShape [${filterShape.join(', ')}]: expected rank ` +
          `${filterShape.length} and depth ${inputDims}, or a multiple of it by a divisor of ${outputDims}.`,
      );
    const small = shape.slice(1, -1).findIndex((cells, axis) => cells <= this.#reach(axis));
    if (this.hp.padding === 'VALID' && small >= 0)
      throw this.error(
        `inputs [${shape.join(', ')}] have ${shape[small + 1]} cells along axis ${small + 1}, and a window has ` +
          `${this.#reach(small) + 1}; padding 'VALID' has no window.`,
      );
  }
}

/** A convolution over time: inputs [B, T, I] with w [taps, I, O], plus b [O]. */
export class Conv1D extends BaseConvolution.with({
  filterShape: z
    .tuple([size(), size(), size()])
    .describe('Taps, depth of the input and depth of the output.'),
  filterStride: z.tuple([size()]).default([1]).describe(STRIDE),
  dilations: z.tuple([size()]).default([1]).describe(DILATIONS),
}) {
  protected override get windows(): ConvolutionWindows {
    return this.hp;
  }
}

/** A convolution over images, or over time and frequency: inputs [B, H, W, I] with w [height, width, I, O], plus b [O]. */
export class Conv2D extends BaseConvolution.with({
  filterShape: z
    .tuple([size(), size(), size(), size()])
    .describe('Height, width, depth of the input and depth of the output.'),
  filterStride: pairField().default([1, 1]).describe(STRIDE),
  dilations: pairField().default([1, 1]).describe(DILATIONS),
}) {
  protected override get windows(): ConvolutionWindows {
    return this.hp;
  }
}

const tripleField = () => z.tuple([size(), size(), size()]);

/** A convolution over videos or volumes: inputs [B, T, H, W, I] with w [time, height, width, I, O], plus b [O]. */
export class Conv3D extends BaseConvolution.with({
  filterShape: z
    .tuple([size(), size(), size(), size(), size()])
    .describe('Time, height, width, depth of the input and depth of the output.'),
  filterStride: tripleField().default([1, 1, 1]).describe(STRIDE),
  dilations: tripleField().default([1, 1, 1]).describe(DILATIONS),
}) {
  protected override get windows(): ConvolutionWindows {
    return this.hp;
  }
}
