/** @file MLP-Mixer's block. */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { deepCopy, sub } from '../../hparams/index.js';
import { activationField, GELU } from '../activations.js';
import { BaseLayer } from '../core/base.js';
import { FeedForward, MLPBlock } from '../linears.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';

/**
 * Two perceptrons with norms and residual connections (Tolstikhin et al., 2021): one over the tokens, the same for each channel,
 * then one over the channels, the same for each token. Every token sees all others.
 */
export class MixerBlock extends BaseLayer.with({
  numTokens: z.int().positive().describe('Tokens of an example.'),
  inputDims: z.int().positive().describe('Depth of a token.'),
  tokensMlpDims: z.int().positive().describe('Hidden depth of the perceptron over the tokens.'),
  channelsMlpDims: z.int().positive().describe('Hidden depth of the perceptron over the channels.'),
  lnTpl: sub(BaseNormalization, () => LayerNorm.config()).describe('The norm before each.'),
  activationTpl: activationField(() => GELU.config()),
}) {
  #norms: BaseNormalization[] = [];
  #tokenMixing!: MLPBlock;
  #channelMixing!: MLPBlock;

  protected override setup(): void {
    const { numTokens, inputDims, tokensMlpDims, channelsMlpDims, lnTpl, activationTpl } = this.hp;
    this.#norms = ['token_ln', 'channel_ln'].map((name) =>
      this.createChild(name, deepCopy(lnTpl), { dim: inputDims }),
    );
    const mixing = (dims: number, hiddenDims: number) =>
      MLPBlock.config({
        ...{ numLayers: 2, hiddenDims, activateFinal: false },
        ffTpl: FeedForward.config({
          inputDims: dims,
          outputDims: dims,
          activationTpl: deepCopy(activationTpl),
        }),
      });
    this.#tokenMixing = this.createChild('token_mixing', mixing(numTokens, tokensMlpDims));
    this.#channelMixing = this.createChild('channel_mixing', mixing(inputDims, channelsMlpDims));
  }

  /** [B, numTokens, inputDims] to the same shape. @throws LayerError for other shapes */
  fprop(inputs: Tensor): Tensor {
    const { numTokens, inputDims } = this.hp;
    if (inputs.rank !== 3 || inputs.shape[1] !== numTokens || inputs.shape[2] !== inputDims)
      throw this.error(
        `inputs [${inputs.shape.join(', ')}]: expected [B, ${numTokens}, ${inputDims}], numTokens and inputDims.`,
      );
    const [tokenNorm, channelNorm] = this.#norms as [BaseNormalization, BaseNormalization];
    const byChannel = tf.transpose(tokenNorm.fprop(inputs), [0, 2, 1]);
    const x = tf.add(inputs, tf.transpose(this.#tokenMixing.fprop(byChannel), [0, 2, 1]));
    return tf.add(x, this.#channelMixing.fprop(channelNorm.fprop(x)));
  }
}
