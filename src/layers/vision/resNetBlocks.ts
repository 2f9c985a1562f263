/** @file Residual blocks of convolutions (praxis/layers/resnets.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type Config, classOf, deepCopyWith, sub } from '../../hparams/index.js';
import { activationField, activationLayer, type BaseActivation, Identity, ReLU } from '../activations.js';
import { ConvBNAct } from '../convolution/convBNAct.js';
import { BaseLayer } from '../core/base.js';
import { BatchNorm } from '../normalizations.js';
import { dropoutField, StochasticResidual } from '../stochastics.js';

const size = () => z.int().positive();

/** One convolution of a block. */
interface Step {
  readonly filterShape: [number, number, number, number];
  readonly stride?: number;
  /** Whether the activation follows; false in front of the sum. */
  readonly isActivated?: boolean;
  readonly isLast?: boolean;
}

/** Base of the residual blocks: activation(shortcut(x) + body(x)) (He et al., 2015). */
export abstract class BaseResNetBlock extends BaseLayer.with({
  inputDim: size().describe('Depth of the input.'),
  outputDim: size().describe('Depth of the output.'),
  convParams: sub(ConvBNAct).describe('Each convolution; the block sets its filter, stride and activation.'),
  kernelSize: size().default(3).describe('Height and width of the windows.'),
  stride: size().default(1).describe('Cells of the input for each of the output.'),
  activationTpl: activationField(() => ReLU.config()),
  residualDroppathProb: dropoutField('the body for an example'),
  zeroInitResidual: z
    .boolean()
    .default(false)
    .describe(
      "Whether the gamma of the body's last norm begins with 0 in effect, and the block as its shortcut.",
    ),
}) {
  static override readonly isAbstract = true;
  #body: ConvBNAct[] = [];
  #shortcut: ConvBNAct | null = null;
  #droppath: StochasticResidual | null = null;
  #postActivation!: BaseActivation;

  /** The convolutions of the body. */
  protected abstract steps(): readonly Step[];

  protected override setup(): void {
    const { inputDim, outputDim, stride, activationTpl, residualDroppathProb } = this.hp;
    this.#body = this.createChildren(
      'body',
      this.steps().map((step) => this.#conv(step)),
    );
    if (inputDim !== outputDim || stride !== 1)
      this.#shortcut = this.createChild(
        'shortcut',
        this.#conv({ filterShape: [1, 1, inputDim, outputDim], stride, isActivated: false }),
      );
    if (residualDroppathProb > 0)
      this.#droppath = this.createChild(
        'residual_droppath',
        StochasticResidual.config({ survivalProb: 1 - residualDroppathProb }),
      );
    this.#postActivation = this.createChild('postact', deepCopyWith(activationLayer(activationTpl), {}));
  }

  #conv({ filterShape, stride = 1, isActivated = true, isLast = false }: Step): Config<ConvBNAct> {
    const { convParams, activationTpl, zeroInitResidual } = this.hp;
    return deepCopyWith(convParams, {
      ...{ filterShape, filterStride: [stride, stride] },
      activationTpl: isActivated ? activationTpl : Identity.config(),
      ...(isLast && zeroInitResidual && { batchNormTpl: this.#zeroNorm() }),
    });
  }

  #zeroNorm(): Config<BatchNorm> {
    const { batchNormTpl } = this.hp.convParams;
    if (batchNormTpl === null || classOf(batchNormTpl) !== BatchNorm)
      throw this.error('zeroInitResidual begins with a gamma of BatchNorm, and convParams has another norm.');
    return deepCopyWith(batchNormTpl as Config<BatchNorm>, { gammaInit: -1 });
  }

  /** [B, H, W, inputDim] to [B, ceil(H / stride), ceil(W / stride), outputDim]. */
  fprop(inputs: Tensor): Tensor {
    const outputs = this.#body.reduce((x, conv) => conv.fprop(x), inputs);
    const skipped = this.#shortcut ? this.#shortcut.fprop(inputs) : inputs;
    const sum = this.#droppath ? this.#droppath.fprop(skipped, outputs) : tf.add(outputs, skipped);
    return this.#postActivation.fprop(sum);
  }
}

/** A bottleneck: 1x1 to a quarter of the output's depth, a window there, 1x1 to the output. */
export class ResNetBlock extends BaseResNetBlock {
  protected override steps(): readonly Step[] {
    const { inputDim, outputDim, kernelSize, stride } = this.hp;
    const inner = Math.floor(outputDim / 4);
    return [
      { filterShape: [1, 1, inputDim, inner] },
      { filterShape: [kernelSize, kernelSize, inner, inner], stride },
      { filterShape: [1, 1, inner, outputDim], isActivated: false, isLast: true },
    ];
  }
}

/** Two convolutions with windows. */
export class ResNetBasicBlock extends BaseResNetBlock {
  protected override steps(): readonly Step[] {
    const { inputDim, outputDim, kernelSize, stride } = this.hp;
    return [
      { filterShape: [kernelSize, kernelSize, inputDim, outputDim], stride },
      { filterShape: [kernelSize, kernelSize, outputDim, outputDim], isActivated: false, isLast: true },
    ];
  }
}
