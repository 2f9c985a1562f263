/** @file Networks without skip connections and norms (praxis/layers/vanillanets.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { deepCopy, deepCopyWith, sub } from '../../hparams/index.js';
import { Conv2D } from '../convolution/convolutions.js';
import { BaseLayer } from '../core/base.js';
import { ScaledDeltaOrthogonal } from '../core/orthogonalInit.js';
import { BaseStages, type StageBlock } from './networkStages.js';

type Applied = BaseLayer & { fprop(x: Tensor): Tensor };

const size = () => z.int().positive();
const negativeSlopeField = z.number().default(0.4).describe('Slope of the activation for negative inputs.');
const convParamsField = sub(Conv2D, () =>
  Conv2D.config({ bias: true, paramsInit: ScaledDeltaOrthogonal.config() }),
).describe('Each convolution.');

/** Leaky ReLU with a factor that keeps the second moment of normal inputs (Zhang et al., 2022). */
function tailoredLeakyReLU(x: Tensor, negativeSlope: number): Tensor {
  return tf.mul(tf.leakyRelu(x, negativeSlope), Math.sqrt(2 / (1 + negativeSlope ** 2)));
}

/** 1x1 to a quarter of the output's depth, a window there, 1x1 to the output, each with its activation. */
export class VanillaBlock extends BaseLayer.with({
  inputDim: size().describe('Depth of the input.'),
  outputDim: size().describe('Depth of the output.'),
  convParams: convParamsField,
  kernelSize: size().default(3).describe('Height and width of the window.'),
  stride: size().default(1).describe('Cells of the input for each of the output.'),
  negativeSlope: negativeSlopeField,
}) {
  #body: Conv2D[] = [];

  protected override setup(): void {
    const { inputDim, outputDim, kernelSize, stride, convParams } = this.hp;
    const inner = Math.floor(outputDim / 4);
    const conv = (window: number, from: number, to: number, stride = 1) =>
      deepCopyWith(convParams, { filterShape: [window, window, from, to], filterStride: [stride, stride] });
    this.#body = this.createChildren('body', [
      conv(1, inputDim, inner),
      conv(kernelSize, inner, inner, stride),
      conv(1, inner, outputDim),
    ]);
  }

  /** [B, H, W, inputDim] to [B, ceil(H / stride), ceil(W / stride), outputDim]. */
  fprop(inputs: Tensor): Tensor {
    return this.#body.reduce((x, conv) => tailoredLeakyReLU(conv.fprop(x), this.hp.negativeSlope), inputs);
  }
}

/** The stages of a ResNet without skip connections and norms (Zhang et al., 2022); by default as deep as ResNet-50. */
export class VanillaNet extends BaseStages.with({
  convParams: convParamsField,
  blockParams: sub(VanillaBlock).describe('Each block.'),
  negativeSlope: negativeSlopeField,
}) {
  protected override get entryflowContraction(): number {
    return 4;
  }

  protected override createEntry(filterShape: [number, number, number, number]): Applied {
    const { convParams, entryflowConvStride: filterStride } = this.hp;
    return this.createChild('entryflow_conv', deepCopyWith(convParams, { filterShape, filterStride }));
  }

  protected override activateEntry(x: Tensor): Tensor {
    return tailoredLeakyReLU(x, this.hp.negativeSlope);
  }

  protected override createBlock(name: string, block: StageBlock): Applied {
    const { convParams, blockParams, negativeSlope } = this.hp;
    return this.createChild(
      name,
      deepCopyWith(blockParams, { ...block, negativeSlope, convParams: deepCopy(convParams) }),
    );
  }
}
