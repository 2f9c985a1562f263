/** @file ConvNeXt's block. */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { sub } from '../../hparams/index.js';
import { activationField, GELU, Identity } from '../activations.js';
import { Conv2D } from '../convolution/convolutions.js';
import { BaseLayer } from '../core/base.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { FeedForward } from '../linears.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';
import { dropoutField, StochasticResidual } from '../stochastics.js';

/**
 * x + gamma · down(gelu(up(ln(depthwise(x))))) (Liu et al., 2022): a window over each channel, then an inverted bottleneck over
 * single cells, with a trained factor for each channel.
 */
export class ConvNeXtBlock extends BaseLayer.with({
  inputDim: z.int().positive().describe('Depth of the input and of the output.'),
  kernelSize: z.int().positive().default(7).describe('Height and width of the window.'),
  expansion: z.int().positive().default(4).describe("Factor on the input's depth between the linear layers."),
  layerScaleInit: z
    .number()
    .nullable()
    .default(1e-6)
    .describe("Initial value of each channel's factor; null: there is none."),
  residualDroppathProb: dropoutField('the block for an example'),
  depthwiseTpl: sub(Conv2D, () => Conv2D.config({ bias: true })).describe('The convolution of each channel.'),
  lnTpl: sub(BaseNormalization, () => LayerNorm.config()).describe('The norm.'),
  activationTpl: activationField(() => GELU.config({ approximate: false })),
}) {
  declare readonly theta: Theta<'gamma'>;
  #depthwise!: Conv2D;
  #norm!: BaseNormalization;
  #up!: FeedForward;
  #down!: FeedForward;
  #residual!: StochasticResidual;

  protected override setup(): void {
    const { inputDim, kernelSize, expansion, layerScaleInit, ...hp } = this.hp;
    const hidden = expansion * inputDim;
    this.#depthwise = this.createChild('depthwise', hp.depthwiseTpl, {
      filterShape: [kernelSize, kernelSize, 1, inputDim],
    });
    this.#norm = this.createChild('ln', hp.lnTpl, { dim: inputDim });
    const { activationTpl } = hp;
    this.#up = this.createChild(
      'up',
      FeedForward.config({ inputDims: inputDim, outputDims: hidden, activationTpl }),
    );
    this.#down = this.createChild(
      'down',
      FeedForward.config({ inputDims: hidden, outputDims: inputDim, activationTpl: Identity.config() }),
    );
    this.#residual = this.createChild(
      'residual_droppath',
      StochasticResidual.config({ survivalProb: 1 - hp.residualDroppathProb }),
    );
    if (layerScaleInit !== null)
      this.createVariable('gamma', { shape: [inputDim], init: constantInit(layerScaleInit) });
  }

  /** [B, H, W, inputDim] to the same shape. */
  fprop(inputs: Tensor): Tensor {
    const x = this.#down.fprop(this.#up.fprop(this.#norm.fprop(this.#depthwise.fprop(inputs))));
    return this.#residual.fprop(inputs, this.hp.layerScaleInit === null ? x : tf.mul(x, this.theta.gamma));
  }
}
