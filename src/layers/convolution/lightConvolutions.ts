/** @file Light convolutions: gated, depthwise, with norms and a residual connection (praxis/layers/convolutions.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { deepCopyWith, sub } from '../../hparams/index.js';
import { activationField, activationLayer, type BaseActivation, Identity, Swish } from '../activations.js';
import { BaseLayer } from '../core/base.js';
import { Xavier } from '../core/weightInit.js';
import { FeedForward } from '../linears.js';
import { BaseNormalization, BatchNorm, LayerNorm } from '../normalizations.js';
import { Dropout, dropoutField } from '../stochastics.js';
import { BaseDepthwiseConv1D, DepthwiseConv1D } from './depthwiseConvolutions.js';

/**
 * The convolution module of a Conformer (Gulati et al., 2020):
 * x + dropout(end(activation(norm(depthwise(act(ln(x)) · sigmoid(gated(ln(x)))))))).
 */
export class LightConv1D extends BaseLayer.with({
  inputDims: z.int().positive().describe('Depth of the input and of the output.'),
  kernelSize: z.int().positive().describe('Taps of the depthwise convolution.'),
  convActivationTpl: activationField(() => Swish.config()),
  dropoutProb: dropoutField('an output element'),
  lnTpl: sub(BaseNormalization, () => LayerNorm.config()).describe('The norm of the input.'),
  linearStartTpl: sub(FeedForward).describe('Both maps of the gated linear unit.'),
  depthwiseConvTpl: sub(BaseDepthwiseConv1D, () => DepthwiseConv1D.config()).describe('The convolution.'),
  convNormLayerTpl: sub(BaseNormalization, () => BatchNorm.config()).describe(
    'The norm behind the convolution.',
  ),
  linearEndTpl: sub(FeedForward).describe('The map behind the activation.'),
  dropoutTpl: sub(Dropout).describe('Dropout of the outputs; keepProb is 1 - dropoutProb.'),
  isCausal: z
    .boolean()
    .default(false)
    .describe('Whether an output depends on its time and earlier ones only.'),
  use2dConvNorm: z
    .boolean()
    .default(false)
    .describe('Whether the norm behind the convolution gets images of width 1, [B, T, 1, D].'),
}) {
  #norm!: BaseNormalization;
  #act!: FeedForward;
  #gated!: FeedForward;
  #depthwise!: BaseDepthwiseConv1D;
  #convNorm!: BaseNormalization;
  #activation!: BaseActivation;
  #end!: FeedForward;
  #dropout!: Dropout;

  protected override setup(): void {
    const { hp } = this;
    const { inputDims, isCausal } = hp;
    this.#norm = this.createChild('ln', hp.lnTpl, { dim: inputDims });
    // Xavier's formula for a matrix of twice the outputs: act and gated are its halves.
    const linear = () => ({
      ...{ inputDims, outputDims: inputDims },
      activationTpl: Identity.config(),
      paramsInit: Xavier.config({ scale: Math.sqrt(3 / 2) }),
    });
    this.#act = this.createChild('linear_start_act', deepCopyWith(hp.linearStartTpl, linear()));
    this.#gated = this.createChild('linear_start_gated', deepCopyWith(hp.linearStartTpl, linear()));
    this.#end = this.createChild('linear_end', deepCopyWith(hp.linearEndTpl, linear()));
    this.#depthwise = this.createChild('depthwise_conv1d', hp.depthwiseConvTpl, {
      filterShape: [hp.kernelSize, inputDims, 1],
      isCausal,
    });
    this.#convNorm = this.createChild('conv_norm', hp.convNormLayerTpl, { dim: inputDims });
    this.#activation = this.createChild('conv_activation', activationLayer(hp.convActivationTpl));
    this.#dropout = this.createChild('dropout', hp.dropoutTpl, { keepProb: 1 - hp.dropoutProb });
  }

  /**
   * [B, T, D] to the same shape.
   *
   * @param paddings [B, T], 1 for padding: it counts as 0 in the convolution and does not count in the norm behind it.
   * @throws LayerError for inputs or paddings of another shape
   */
  fprop(inputs: Tensor, paddings?: Tensor): Tensor {
    const x = this.#norm.fprop(inputs, paddings);
    const gated = tf.mul(this.#act.fprop(x), tf.sigmoid(this.#gated.fprop(x)));
    const convolved = this.#depthwise.fprop(gated, paddings);
    const outputs = this.#end.fprop(this.#activation.fprop(this.#normed(convolved, paddings)));
    return tf.add(this.#dropout.fprop(outputs), inputs);
  }

  #normed(x: Tensor, paddings?: Tensor): Tensor {
    if (!this.hp.use2dConvNorm) return this.#convNorm.fprop(x, paddings);
    return tf.squeeze(this.#convNorm.fprop(tf.expandDims(x, 2), paddings), [2]);
  }
}
