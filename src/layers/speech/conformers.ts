/** @file Conformer blocks: attention and convolution between two halves of a feed-forward layer (praxis/layers/conformers.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type Config, type ConfigValues, deepCopy, deepCopyWith, sub } from '../../hparams/index.js';
import { activationField, Swish } from '../activations.js';
import { DotProductAttention } from '../attention/attentions.js';
import { DotProductAttentionWithContext } from '../attention/localAttention.js';
import type { Visibility } from '../attention/visibility.js';
import { LightConv1D } from '../convolution/lightConvolutions.js';
import { BaseLayer } from '../core/base.js';
import { selected } from '../core/masks.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';
import { Dropout, dropoutField } from '../stochastics.js';
import { keptPositions, TransformerFeedForward } from '../transformer/feedForwards.js';

/**
 * inputWeight · x + residualWeight · dropout(attention(norm(x))); with `preLayerNorm` unset, the norm of
 * inputWeight · x + residualWeight · dropout(attention(x)).
 */
export class SelfAttentionWithNormAndResidual extends BaseLayer.with({
  residualWeight: z.number().default(1).describe("Factor on the attention's output."),
  inputWeight: z.number().default(1).describe('Factor on the input.'),
  selfAttenTpl: sub(DotProductAttention, () => DotProductAttentionWithContext.config()).describe(
    'The attention.',
  ),
  normTpl: sub(BaseNormalization, () => LayerNorm.config()).describe('The norm.'),
  preLayerNorm: z
    .boolean()
    .default(true)
    .describe("Whether the norm is of the attention's input, else of the sum."),
  residualDropoutTpl: sub(Dropout).describe('Dropout of the output; keepProb is 1 - residualDropoutProb.'),
  residualDropoutProb: dropoutField('an output element'),
}) {
  #attention!: DotProductAttention;
  #norm!: BaseNormalization;
  #dropout!: Dropout;

  protected override setup(): void {
    const { selfAttenTpl, normTpl, residualDropoutTpl, residualDropoutProb } = this.hp;
    this.#attention = this.createChild('self_atten', selfAttenTpl);
    this.#norm = this.createChild('norm', normTpl, { dim: selfAttenTpl.inputDim });
    this.#dropout = this.createChild('residual_dropout', residualDropoutTpl, {
      keepProb: 1 - residualDropoutProb,
    });
  }

  /**
   * [B, T, D] to the same shape.
   *
   * @param paddings [B, T], 1 for padding, which counts as 0 and which no query sees. Either size may be 1.
   * @param seen visibility of positions to each other, besides paddings; all where absent.
   * @throws LayerError for inputs or paddings of another shape
   */
  fprop(inputs: Tensor, paddings?: Tensor, seen: Visibility = {}): Tensor {
    const { preLayerNorm, residualWeight, inputWeight } = this.hp;
    const x = paddings ? selected(inputs, keptPositions(this, inputs, paddings)) : inputs;
    const hidden = paddings && tf.broadcastTo(paddings, inputs.shape.slice(0, -1));
    const attended = this.#attention.fprop(preLayerNorm ? this.#norm.fprop(x) : x, {
      seen: hidden ? { ...seen, paddings: hidden } : seen,
    });
    const weighed = (x: Tensor, weight: number): Tensor => (weight === 1 ? x : tf.mul(x, weight));
    const sum = tf.add(
      weighed(x, inputWeight),
      weighed(this.#dropout.fprop(attended), residualWeight),
    ) as Tensor;
    return preLayerNorm ? sum : this.#norm.fprop(sum);
  }
}

const partDropoutField = (what: string) =>
  z
    .number()
    .min(0)
    .lt(1)
    .nullable()
    .default(null)
    .describe(`Probability that ${what} is dropped; null: dropoutProb.`);

const feedForwardField = (where: string) =>
  sub(TransformerFeedForward)
    .nullable()
    .describe(
      `The feed-forward layer at the ${where}; null: none. Its depths, weight and dropouts are the block's.`,
    );

/** The order of attention and convolution. */
const orders = {
  mhsa: ['trans_atten'],
  conv: ['lconv'],
  mhsa_before_conv: ['trans_atten', 'lconv'],
  conv_before_mhsa: ['lconv', 'trans_atten'],
} as const;

/**
 * x += ½ ff(x); x += attention(x); x += lconv(x); x += ½ ff'(x); ln(x), each with a norm of its own (Conformer, Gulati et al.,
 * 2020).
 *
 * Convolution and attention see the future; the norm of the convolution joins the rows of a batch in training.
 */
export class Conformer extends BaseLayer.with({
  modelDims: z.int().positive().default(512).describe('Depth of the input and of the output.'),
  kernelSize: z.int().positive().default(32).describe('Taps of the convolution.'),
  ffActivationTpl: activationField(() => Swish.config()),
  ffResidualWeight: z.number().default(0.5).describe('Factor on what a feed-forward layer adds.'),
  ffnDimMultiplier: z
    .int()
    .positive()
    .default(4)
    .describe('Hidden depth of the feed-forward layers, in modelDims.'),
  attenNumHeads: z.int().positive().default(8).describe('Attention heads.'),
  layerOrder: z
    .enum(['mhsa', 'conv', 'mhsa_before_conv', 'conv_before_mhsa'])
    .default('mhsa_before_conv')
    .describe(
      'Whether attention, convolution or both stand between the feed-forward layers, and their order.',
    ),
  dropoutProb: z
    .number()
    .min(0)
    .lt(1)
    .nullable()
    .default(null)
    .describe('Probability of every dropout; null: 0 where no other is set.'),
  convResidualDropout: partDropoutField("an element of the convolution's output"),
  attenResidualDropout: partDropoutField("an element of the attention's output"),
  ffnResidualDropout: partDropoutField("an element of a feed-forward layer's output"),
  attenDropout: partDropoutField('an attention weight'),
  ffnReluDropout: partDropoutField("a feed-forward layer's activation"),
  fflayerStartTpl: feedForwardField('beginning'),
  transAttenTpl: sub(SelfAttentionWithNormAndResidual).describe('The attention with norm and residual.'),
  lconvTpl: sub(LightConv1D).describe('The convolution.'),
  fflayerEndTpl: feedForwardField('end'),
  fflayerWeightSharing: z
    .boolean()
    .default(false)
    .describe('Whether the feed-forward layer at the beginning stands at the end as well.'),
  finalLnTpl: sub(BaseNormalization, () => LayerNorm.config())
    .nullable()
    .describe('The norm of the output; null: none.'),
}) {
  #start: TransformerFeedForward | null = null;
  #middle!: readonly (SelfAttentionWithNormAndResidual | LightConv1D)[];
  #end: TransformerFeedForward | null = null;
  #norm: BaseNormalization | null = null;

  protected override setup(): void {
    const { hp } = this;
    if (hp.fflayerWeightSharing && !hp.fflayerStartTpl)
      throw this.error('fflayerWeightSharing: expected a fflayerStartTpl to share, got null.');
    this.#start = this.#createFeedForward('fflayer_start', hp.fflayerStartTpl);
    this.#end = hp.fflayerWeightSharing
      ? this.#start
      : this.#createFeedForward('fflayer_end', hp.fflayerEndTpl);
    this.#middle = orders[hp.layerOrder].map((name) =>
      name === 'lconv' ? this.#createConvolution(name) : this.#createAttention(name),
    );
    if (hp.finalLnTpl) this.#norm = this.createChild('final_ln', hp.finalLnTpl, { dim: hp.modelDims });
  }

  /** Probability of a part's dropout. @throws LayerError where it is not that of the block */
  #dropout(
    field:
      | 'convResidualDropout'
      | 'attenResidualDropout'
      | 'ffnResidualDropout'
      | 'attenDropout'
      | 'ffnReluDropout',
  ): number {
    const { dropoutProb, [field]: own } = this.hp;
    if (dropoutProb !== null && own !== null && own !== dropoutProb)
      throw this.error(`${field}: expected dropoutProb ${dropoutProb}, or null for it, got ${own}.`);
    return dropoutProb ?? own ?? 0;
  }

  #createFeedForward(
    name: string,
    tpl: Config<TransformerFeedForward> | null,
  ): TransformerFeedForward | null {
    if (!tpl) return null;
    const { modelDims, ffnDimMultiplier, ffActivationTpl, ffResidualWeight } = this.hp;
    return this.createChild(name, deepCopy(tpl), {
      ...{ inputDims: modelDims, hiddenDims: modelDims * ffnDimMultiplier },
      ...{ activationTpl: deepCopy(ffActivationTpl), residualWeight: ffResidualWeight },
      residualDropoutProb: this.#dropout('ffnResidualDropout'),
      reluDropoutProb: this.#dropout('ffnReluDropout'),
    } as Partial<ConfigValues<TransformerFeedForward>>);
  }

  #createAttention(name: string): SelfAttentionWithNormAndResidual {
    const { transAttenTpl, modelDims, attenNumHeads } = this.hp;
    return this.createChild(name, transAttenTpl, {
      residualDropoutProb: this.#dropout('attenResidualDropout'),
      selfAttenTpl: deepCopyWith(transAttenTpl.selfAttenTpl, {
        ...{ inputDim: modelDims, hiddenDim: modelDims, numHeads: attenNumHeads },
        attenDropoutProb: this.#dropout('attenDropout'),
      }),
    });
  }

  #createConvolution(name: string): LightConv1D {
    const { lconvTpl, modelDims, kernelSize } = this.hp;
    return this.createChild(name, lconvTpl, {
      ...{ inputDims: modelDims, kernelSize, dropoutProb: this.#dropout('convResidualDropout') },
    });
  }

  /**
   * [B, T, modelDims] to the same shape.
   *
   * @param paddings [B, T], 1 for padding, which no other position sees. Either size may be 1.
   * @param seen visibility of positions to the attention, besides paddings; all where absent.
   * @throws LayerError for inputs or paddings of another shape
   */
  fprop(inputs: Tensor, paddings?: Tensor, seen?: Visibility): Tensor {
    if (seen && this.hp.layerOrder === 'conv')
      throw this.error("layerOrder is 'conv': there is no attention for a visibility.");
    const started = this.#start?.fprop(inputs, paddings) ?? inputs;
    const mixed = this.#middle.reduce(
      (x, layer) =>
        layer instanceof SelfAttentionWithNormAndResidual
          ? layer.fprop(x, paddings, seen)
          : layer.fprop(x, paddings),
      started,
    );
    const ended = this.#end?.fprop(mixed, paddings) ?? mixed;
    return this.#norm?.fprop(ended) ?? ended;
  }
}
