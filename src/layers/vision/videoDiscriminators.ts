/** @file Discriminator of videos and its blocks (praxis/layers/video/vqvae.py, enc_dec_3dcnn.py). */
import { z } from 'zod';
import { sizeOf, type Tensor, tf } from '../../compiler/index.js';
import { deepCopy, deepCopyWith, sub } from '../../hparams/index.js';
import { activationField, activationLayer, type BaseActivation, LeakyReLU } from '../activations.js';
import { Conv3D } from '../convolution/convolutions.js';
import { BaseLayer } from '../core/base.js';
import { MLPBlock } from '../linears.js';
import { alongAxis } from './videoBlocks.js';

const size = () => z.int().positive();

/** Row `n` of Pascal's triangle. */
const binomials = (n: number): number[] =>
  Array.from({ length: n }).reduce<number[]>((row) => [...row, 0].map((x, i) => x + (row[i - 1] ?? 0)), [1]);

/** Sums of every `stride`-th window of an axis, weighed; windows reach beyond the edges as TensorFlow's 'SAME'. */
function blurred(x: Tensor, axis: number, weights: readonly number[], stride: number): Tensor {
  return alongAxis(x, axis, (lines) => {
    const [rows, cells, width] = lines.shape as [number, number, number];
    const count = Math.ceil(cells / stride);
    const needed = Math.max((count - 1) * stride + weights.length - cells, 0);
    const pads: [number, number] = [Math.floor(needed / 2), Math.ceil(needed / 2)];
    const padded = tf.pad(lines, [[0, 0], pads, [0, 0]]);
    const taps = weights.map((weight, i) => {
      const end = i + (count - 1) * stride + 1;
      return tf.mul(tf.stridedSlice(padded, [0, i, 0], [rows, end, width], [1, stride, 1]), weight) as Tensor;
    });
    return taps.reduce((a, b) => tf.add(a, b));
  });
}

/** Blurs each channel by binomial weights and keeps every second cell (Zhang, 2019). */
export class BlurPool3D extends BaseLayer.with({
  filterSize: z.int().min(2).max(7).default(3).describe('Cells of a window along each axis.'),
  strides: z.tuple([size(), size(), size()]).default([2, 2, 2]).describe('Cells from window to window.'),
}) {
  /** [B, T, H, W, D] to [B, ceil(T / stride), ceil(H / stride), ceil(W / stride), D]. */
  fprop(inputs: Tensor): Tensor {
    const { filterSize, strides } = this.hp;
    const row = binomials(filterSize - 1).map((x) => x / 2 ** (filterSize - 1));
    // The weights are products of those of the axes.
    return strides.reduce((x, stride, axis) => blurred(x, axis + 1, row, stride), inputs);
  }
}

/** (blurred branch + blurred shortcut) / sqrt(2), in half the cells: a block of StyleGAN's discriminator over videos. */
export class DiscriminatorResBlock extends BaseLayer.with({
  inputDim: size().describe('Depth of the input.'),
  outputDim: size().default(128).describe('Depth of the output.'),
  blurFilterSize: z.int().min(2).max(7).default(3).describe("Cells of the blur's windows."),
  convLayerTpl: sub(Conv3D).describe('Each convolution.'),
  activationTpl: activationField(() => LeakyReLU.config()),
  blurPoolTpl: sub(BlurPool3D).describe('What halves each axis.'),
}) {
  #convs!: Readonly<Record<'first' | 'residual' | 'last', Conv3D>>;
  #activation!: BaseActivation;
  #blur!: BlurPool3D;

  protected override setup(): void {
    const { inputDim, outputDim, blurFilterSize, convLayerTpl, activationTpl, blurPoolTpl } = this.hp;
    this.#activation = this.createChild('activation', activationLayer(activationTpl));
    const conv = (name: string, taps: number, to: number, bias: boolean) =>
      this.createChild(name, deepCopy(convLayerTpl), {
        ...{ filterShape: [taps, taps, taps, inputDim, to], padding: 'SAME', bias },
      });
    this.#convs = {
      first: conv('conv_first', 3, inputDim, true),
      residual: conv('conv_residual', 1, outputDim, false),
      last: conv('conv_last', 3, outputDim, true),
    };
    this.#blur = this.createChild('blur_pool', blurPoolTpl, { filterSize: blurFilterSize });
  }

  /** [B, T, H, W, inputDim] to [B, ceil(T / 2), ceil(H / 2), ceil(W / 2), outputDim]. */
  fprop(inputs: Tensor): Tensor {
    const { first, residual, last } = this.#convs;
    const activate = (x: Tensor): Tensor => this.#activation.fprop(x);
    const branch = activate(last.fprop(this.#blur.fprop(activate(first.fprop(inputs)))));
    return tf.mul(tf.add(branch, residual.fprop(this.#blur.fprop(inputs))), Math.SQRT1_2);
  }
}

/** Tells videos from made ones: a logit of convolutions in blocks that halve each axis (StyleGAN's, over videos; Pax's Discriminator). */
export class VideoDiscriminator extends BaseLayer.with({
  filters: size()
    .default(128)
    .describe('Depth of the first convolution, times channelMultipliers behind the blocks.'),
  numFrames: size().default(1).describe('Frames of a video.'),
  imageHeight: size().default(256).describe('Height of a frame.'),
  imageWidth: size().default(256).describe('Width of a frame.'),
  inputDim: size().default(3).describe('Depth of the videos.'),
  blurFilterSize: z.int().min(2).max(7).default(3).describe("Cells of the blur's windows."),
  channelMultipliers: z
    .array(size())
    .min(1)
    .default([2, 4, 4, 4])
    .describe('Depth behind each block, in filters.'),
  convTpl: sub(Conv3D).describe('The first and the last convolution.'),
  resBlockTpl: sub(DiscriminatorResBlock).describe('Each block; its activation is that of this layer.'),
  activationTpl: activationField(() => LeakyReLU.config({ negativeSlope: 0.2 })),
  projTpl: sub(MLPBlock).describe('The two layers to the logit.'),
}) {
  #layers: (BaseLayer & { fprop(x: Tensor): Tensor })[] = [];
  #proj!: MLPBlock;

  protected override setup(): void {
    const { hp } = this;
    const { filters, numFrames, imageHeight, imageWidth, channelMultipliers, blurFilterSize } = hp;
    const depths = channelMultipliers.map((times) => times * filters);
    const hiddenDims = depths.at(-1)!;
    const activation = this.createChild('activation', activationLayer(hp.activationTpl));
    const conv = (name: string, from: number, to: number) =>
      this.createChild(name, deepCopy(hp.convTpl), {
        ...{ filterShape: [3, 3, 3, from, to], padding: 'SAME', bias: true },
      });
    const first = conv('conv_first', hp.inputDim, filters);
    const blocks = depths.map((outputDim, i) =>
      deepCopyWith(hp.resBlockTpl, {
        ...{ inputDim: depths[i - 1] ?? filters, outputDim, blurFilterSize },
        activationTpl: deepCopy(hp.activationTpl),
      }),
    );
    const body = this.createChildren('res_blocks', blocks);
    this.#layers = [first, activation, ...body, conv('conv_last', hiddenDims, hiddenDims), activation];
    const cells = [numFrames, imageHeight, imageWidth].map((n) => Math.ceil(n / 2 ** depths.length));
    this.#proj = this.createChild('proj', hp.projTpl, {
      ...{ numLayers: 2, hiddenDims, activateFinal: false },
      ffTpl: deepCopyWith(hp.projTpl.ffTpl, {
        inputDims: cells.reduce((a, b) => a * b, hiddenDims),
        outputDims: 1,
        activationTpl: deepCopy(hp.activationTpl),
      }),
    });
  }

  /** [B, numFrames, imageHeight, imageWidth, inputDim] to logits [B, 1]. */
  fprop(inputs: Tensor): Tensor {
    const { numFrames, imageHeight, imageWidth, inputDim } = this.hp;
    const [batch, ...video] = inputs.shape as [number, ...number[]];
    const expected = [numFrames, imageHeight, imageWidth, inputDim];
    if (video.join() !== expected.join())
      throw this.error(`expected videos [B, ${expected.join(', ')}], got [${inputs.shape.join(', ')}].`);
    const x = this.#layers.reduce((y, layer) => layer.fprop(y), inputs);
    return this.#proj.fprop(tf.reshape(x, [batch, sizeOf(x.shape.slice(1))]));
  }
}
