/** @file MobileNetV2 (praxis/layers/mobilenet.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type Config, deepCopy, deepCopyWith, sub } from '../../hparams/index.js';
import { activationField, Identity, ReLU6 } from '../activations.js';
import { ConvBNAct } from '../convolution/convBNAct.js';
import { pairField } from '../convolution/convolutions.js';
import { BaseLayer } from '../core/base.js';
import { GaussianSqrtFanOut } from '../core/weightInit.js';
import { FeedForward } from '../linears.js';
import { BatchNorm } from '../normalizations.js';
import { GlobalPooling } from '../poolings.js';
import { Sequential } from '../sequential.js';

const size = () => z.int().positive();

/** 1x1 to `expansion` times the depth, a depthwise window, 1x1 to the output; plus the input where shapes agree. */
export class InvertedResidualBlock extends BaseLayer.with({
  inputDim: size().describe('Depth of the input.'),
  outputDim: size().describe('Depth of the output.'),
  expansion: size()
    .default(6)
    .describe("Factor on the input's depth within the block; 1: no first convolution."),
  convParams: sub(ConvBNAct).describe('Each convolution; the block sets its filter, stride and activation.'),
  kernelSize: size().default(3).describe('Height and width of the windows.'),
  stride: size().default(1).describe('Cells of the input for each of the output.'),
  activationTpl: activationField(() => ReLU6.config()),
}) {
  #body!: Sequential;

  protected override setup(): void {
    const { inputDim, outputDim, expansion, convParams, kernelSize, stride, activationTpl } = this.hp;
    const inner = expansion * inputDim;
    const conv = (window: number, from: number, to: number, activation = activationTpl, stride = 1) =>
      deepCopyWith(convParams, {
        ...{ filterShape: [window, window, from, to], filterStride: [stride, stride] },
        activationTpl: activation,
      });
    const layers = [
      ...(expansion === 1 ? [] : [conv(1, inputDim, inner)]),
      // A filter of depth 1 is depthwise.
      conv(kernelSize, 1, inner, activationTpl, stride),
      conv(1, inner, outputDim, Identity.config()),
    ];
    this.#body = this.createChild('body', Sequential.config({ layers }));
  }

  /** [B, H, W, inputDim] to [B, ceil(H / stride), ceil(W / stride), outputDim]. */
  fprop(inputs: Tensor): Tensor {
    const { inputDim, outputDim, stride } = this.hp;
    const outputs = this.#body.fprop(inputs);
    return inputDim === outputDim && stride === 1 ? tf.add(outputs, inputs) : outputs;
  }
}

/** The multiple of `divisor` next to `value`, at least `least` and not below 90 % of it. */
function divisible(value: number, divisor: number, least = divisor): number {
  const rounded = Math.max(least, Math.floor(Math.floor(value + divisor / 2) / divisor) * divisor);
  return rounded < 0.9 * value ? rounded + divisor : rounded;
}

/** A list with an entry for each block. */
const perBlock = (values: number[], what: string) => z.array(size()).min(1).default(values).describe(what);

/** Inverted residual blocks between two convolutions (Sandler et al., 2018). */
export class MobileNet extends BaseLayer.with({
  convParams: sub(ConvBNAct, () =>
    ConvBNAct.config({
      activationTpl: ReLU6.config(),
      batchNormTpl: BatchNorm.config({ decay: 0.9 }),
      paramsInit: GaussianSqrtFanOut.config({ scale: 1.4141 }),
    }),
  ).describe('Each convolution.'),
  blockParams: sub(InvertedResidualBlock).describe('Each block.'),
  expansions: perBlock([1, ...Array(16).fill(6)], 'Expansion of each block.'),
  strides: perBlock([1, 2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1], 'Stride of each block.'),
  channels: perBlock(
    [16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320],
    'Depth of each block, before multiplier.',
  ),
  outputChannels: size().default(1280).describe('Depth of the last convolution.'),
  numClasses: z.int().nonnegative().default(0).describe('Classes of a last linear layer; 0: there is none.'),
  entryflowConvKernel: z
    .tuple([size(), size(), size()])
    .default([3, 3, 3])
    .describe('Height, width and depth of the input of the first convolution.'),
  entryflowConvStride: pairField().default([2, 2]).describe('Stride of the first convolution.'),
  outputSpatialPoolingParams: sub(GlobalPooling, () => GlobalPooling.config({ poolingDims: [1, 2] }))
    .nullable()
    .describe('Pooling of the last convolution; null: none.'),
  predictParams: sub(FeedForward).describe('The last linear layer.'),
  multiplier: z.number().positive().default(1).describe('Factor on all depths.'),
  divisibleBy: size().default(8).describe('Depths are multiples of it.'),
  minDepth: size().default(8).describe('Least depth of the first convolution.'),
}) {
  #body!: Sequential;

  protected override setup(): void {
    const { hp } = this;
    for (const name of ['strides', 'channels'] as const)
      if (hp[name].length !== hp.expansions.length)
        throw this.error(
          `${name} has ${hp[name].length} blocks, and expansions has ${hp.expansions.length}.`,
        );
    const { multiplier, divisibleBy, minDepth } = hp;
    let inputDim = divisible(32 * multiplier, divisibleBy, minDepth);
    const conv = (filterShape: [number, number, number, number], filterStride: [number, number]) =>
      deepCopyWith(hp.convParams, { filterShape, filterStride });
    const entry = conv([...hp.entryflowConvKernel, inputDim], [...hp.entryflowConvStride]);
    const blocks = hp.expansions.map((expansion, i) => {
      const outputDim = divisible(hp.channels[i]! * multiplier, divisibleBy);
      const block = { inputDim, outputDim, expansion, stride: hp.strides[i]! };
      inputDim = outputDim;
      return deepCopyWith(hp.blockParams, { ...block, convParams: deepCopy(hp.convParams) });
    });
    const outputDims =
      multiplier > 1 ? divisible(hp.outputChannels * multiplier, divisibleBy, minDepth) : hp.outputChannels;
    const layers: Config<BaseLayer & { fprop(x: Tensor): Tensor }>[] = [
      entry,
      ...blocks,
      conv([1, 1, inputDim, outputDims], [1, 1]),
      ...(hp.outputSpatialPoolingParams ? [hp.outputSpatialPoolingParams] : []),
    ];
    if (hp.numClasses > 0)
      layers.push(deepCopyWith(hp.predictParams, { inputDims: outputDims, outputDims: hp.numClasses }));
    this.#body = this.createChild('body', Sequential.config({ layers }));
  }

  /** Images [B, H, W, 3] to [B, outputChannels], or to scores of classes. */
  fprop(inputs: Tensor): Tensor {
    return this.#body.fprop(inputs);
  }
}
