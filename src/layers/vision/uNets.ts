/** @file U-Net and its blocks. */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { deepCopy, deepCopyWith, sub } from '../../hparams/index.js';
import { checkpointName } from '../checkpointPolicy.js';
import { ConvBNAct } from '../convolution/convBNAct.js';
import { Conv2DTranspose } from '../convolution/imageConvolutions.js';
import { BaseLayer } from '../core/base.js';
import { GroupNorm } from '../groupNorm.js';
import { Pooling } from '../poolings.js';

const size = () => z.int().positive();

const blockFields = {
  inputDim: size().describe('Depth of the input.'),
  outputDim: size().describe('Depth of the output.'),
  kernelSize: size().default(3).describe('Height and width of the windows.'),
  convParams: sub(ConvBNAct, () =>
    ConvBNAct.config({ batchNormTpl: GroupNorm.config({ numGroups: 8 }) }),
  ).describe('Each convolution with its norm and activation.'),
};

/** Two convolutions, each with norm and activation; with `downsample`, a pooling halves the image first. */
export class UNetDownBlock extends BaseLayer.with({
  ...blockFields,
  downsample: z.boolean().default(true).describe('Whether the image is halved.'),
  poolTpl: sub(Pooling, () => Pooling.config({ windowShape: [2, 2] })).describe('What halves the image.'),
}) {
  #pool: Pooling | null = null;
  #body: ConvBNAct[] = [];

  protected override setup(): void {
    const { inputDim, outputDim, kernelSize, convParams, downsample, poolTpl } = this.hp;
    if (downsample) this.#pool = this.createChild('pool', poolTpl);
    const conv = (from: number) =>
      deepCopyWith(convParams, { filterShape: [kernelSize, kernelSize, from, outputDim] });
    this.#body = this.createChildren('body', [conv(inputDim), conv(outputDim)]);
  }

  /** [B, H, W, inputDim] to [B, ceil(H / 2), ceil(W / 2), outputDim]. */
  fprop(inputs: Tensor): Tensor {
    const [first, last] = this.#body as [ConvBNAct, ConvBNAct];
    const hidden = checkpointName(first.fprop(this.#pool ? this.#pool.fprop(inputs) : inputs), 'conv_0');
    return checkpointName(last.fprop(hidden), 'conv_out');
  }
}

/** A transposed convolution doubles the image; two convolutions read it beside the finer features of the way down. */
export class UNetUpBlock extends BaseLayer.with({
  ...blockFields,
  skipDim: size().describe('Depth of the features of the way down, which is that of the doubled image too.'),
  growTpl: sub(Conv2DTranspose, () => Conv2DTranspose.config({ filterStride: [2, 2], bias: true })).describe(
    'What doubles the image; its filter is 2x2.',
  ),
}) {
  #grow!: Conv2DTranspose;
  #body!: UNetDownBlock;

  protected override setup(): void {
    const { inputDim, outputDim, skipDim, kernelSize, convParams, growTpl } = this.hp;
    this.#grow = this.createChild('grow', growTpl, { filterShape: [2, 2, skipDim, inputDim] });
    this.#body = this.createChild(
      'convs',
      UNetDownBlock.config({
        ...{ inputDim: 2 * skipDim, outputDim, kernelSize, convParams },
        downsample: false,
      }),
    );
  }

  /**
   * inputs [B, H, W, inputDim] and skip [B, 2 H, 2 W, skipDim] to [B, 2 H, 2 W, outputDim].
   *
   * @throws LayerError where the doubled inputs and skip differ in size
   */
  fprop(inputs: Tensor, skip: Tensor): Tensor {
    const grown = checkpointName(this.#grow.fprop(inputs), 'conv_1');
    if (grown.shape.join() !== skip.shape.join())
      throw this.error(
        `inputs doubled are [${grown.shape.join(', ')}], and the features beside them [${skip.shape.join(', ')}].`,
      );
    return this.#body.fprop(tf.concat([skip, grown], 3));
  }
}

/**
 * A contracting way and an expanding one, with skip connections between equal sizes (Ronneberger et al., 2015); windows reach
 * beyond the edges, so that images keep their size.
 */
export class UNet extends BaseLayer.with({
  inputDim: size().default(3).describe('Depth of the images.'),
  channels: z
    .array(size())
    .min(1)
    .default([64, 128, 256, 512, 1024])
    .describe('Depth at each size, the finest first.'),
  downBlockTpl: sub(UNetDownBlock).describe('Each block of the contracting way.'),
  upBlockTpl: sub(UNetUpBlock).describe('Each block of the expanding way.'),
}) {
  #down: UNetDownBlock[] = [];
  #up: UNetUpBlock[] = [];

  protected override setup(): void {
    const { inputDim, channels, downBlockTpl, upBlockTpl } = this.hp;
    this.#down = this.createChildren(
      'down',
      channels.map((outputDim, i) =>
        deepCopyWith(downBlockTpl, { inputDim: channels[i - 1] ?? inputDim, outputDim, downsample: i > 0 }),
      ),
    );
    this.#up = channels.slice(0, -1).map((skipDim, i) =>
      this.createChild(`up_${i}`, deepCopy(upBlockTpl), {
        ...{ inputDim: channels[i + 1]!, skipDim },
        outputDim: skipDim,
      }),
    );
  }

  /** Images [B, H, W, inputDim] to [B, H, W, channels[0]]. @throws LayerError where H or W cannot be halved so often */
  fprop(inputs: Tensor): Tensor {
    const halvings = 2 ** (this.hp.channels.length - 1);
    const [, height, width] = inputs.shape as [number, number, number];
    if (height % halvings !== 0 || width % halvings !== 0)
      throw this.error(
        `images of ${height}x${width} are no multiple of ${halvings}, by ${this.hp.channels.length} sizes.`,
      );
    let x = inputs;
    const features = this.#down.map((block) => {
      x = block.fprop(x);
      return x;
    });
    return this.#up.reduceRight((x, block, i) => block.fprop(x, features[i]!), features.at(-1)!);
  }
}
