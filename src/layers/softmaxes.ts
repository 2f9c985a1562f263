/** @file Softmax layers, and those that embed tokens too (praxis/layers/embedding_softmax.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { sub } from '../hparams/index.js';
import { Identity } from './activations.js';
import { BaseSoftmax, type RowLoss } from './baseSoftmax.js';
import { Gaussian } from './core/weightInit.js';
import type { Theta } from './core/weights.js';
import { lookUp, lookupFields } from './embeddings.js';
import { Bias, FeedForward, Linear } from './linears.js';
import { BiTemperedLoss } from './losses.js';

/** logits = inputs w + b, with w [inputDims, numClasses]; `feedForwardTpl.hasBias = false` omits b. */
export class FullSoftmax extends BaseSoftmax.with({
  biasInit: z.number().default(0).describe('Initial value of the bias.'),
  feedForwardTpl: sub(FeedForward).describe('The map to logits; its activation is the identity.'),
  biTemperedLossTpl: sub(BiTemperedLoss, null)
    .nullable()
    .default(null)
    .describe("The loss in the cross entropy's place; null: cross entropy."),
}) {
  protected logitsFfn!: FeedForward;
  #biTemperedLoss: BiTemperedLoss | null = null;

  protected override setup(): void {
    const { inputDims, numClasses, biasInit, feedForwardTpl, biTemperedLossTpl } = this.hp;
    this.logitsFfn = this.createChild('logits_ffn', feedForwardTpl, {
      inputDims,
      outputDims: numClasses,
      biasInit,
      activationTpl: Identity.config(),
    });
    if (biTemperedLossTpl) this.#biTemperedLoss = this.createChild('bi_tempered_loss', biTemperedLossTpl);
  }

  protected override rowLoss(): RowLoss {
    const loss = this.#biTemperedLoss;
    if (loss === null) return super.rowLoss();
    const temperatures = loss.temperatures();
    return (logits, targets) => loss.fprop(logits, this.probabilitiesOf(targets), temperatures);
  }

  protected override uncappedLogits(inputs: Tensor): Tensor {
    return this.logitsFfn.fprop(inputs);
  }
}

/** A softmax that also embeds tokens, with its transposed weights as the table. */
export class SharedEmbeddingSoftmax extends FullSoftmax.with(lookupFields) {
  /** int32 ids [...] to [..., inputDims]. */
  embLookup(ids: Tensor): Tensor {
    return this.shard(lookUp(tf.transpose(this.logitsFfn.weights), ids, this.hp), 'emb_out');
  }
}

/** SharedEmbeddingSoftmax with w [numClasses, inputDims]: lookup needs no transposed copy of the table. */
export class NClassMajorSharedEmbeddingSoftmax extends BaseSoftmax.with({
  ...lookupFields,
  hasBias: z.boolean().default(true).describe('Whether logits have a bias.'),
  biasInit: z.number().default(0).describe('Initial value of the bias.'),
  biasTpl: sub(Bias).describe('The bias.'),
}) {
  declare readonly theta: Theta<'w'>;
  #bias: Bias | null = null;

  protected override setup(): void {
    const { inputDims, numClasses, hasBias, biasInit, biasTpl } = this.hp;
    this.createVariable('w', { shape: [numClasses, inputDims], contracting: [1] });
    if (hasBias) this.#bias = this.createChild('bias', biasTpl, { dims: numClasses, biasInit });
  }

  protected override uncappedLogits(inputs: Tensor): Tensor {
    const logits = tf.matMul(this.factors(inputs, 'w'), this.theta.w, false, true);
    return this.#bias ? this.#bias.fprop(logits) : logits;
  }

  /** int32 ids [...] to [..., inputDims]. */
  embLookup(ids: Tensor): Tensor {
    return this.shard(lookUp(this.theta.w, ids, this.hp), 'emb_out');
  }
}

/**
 * The softmax of GShard (Lepikhin et al., 2021): inputs are divided by sqrt(inputDims), logits have no bias and are limited by a
 * cap, then clipped. Its table [numClasses, inputDims] embeds tokens, by `lookupStyle` 'matmul' in Pax.
 */
export class GShardSharedEmbeddingSoftmax extends BaseSoftmax.with({
  ...lookupFields,
  logitsAbsMax: z.number().nonnegative().default(0).describe('c > 0: logits are clipped to [-c, c].'),
  useTgtLabelsSizeAsLossDenominator: z
    .boolean()
    .default(true)
    .describe(
      'Whether losses are divided by the number of positions, padding included; else by the sum of weights.',
    ),
  labelSmoothingApplyForEval: z.boolean().default(false).describe('Whether evaluation smooths labels too.'),
}) {
  #embedding!: Linear;

  protected override setup(): void {
    const { numClasses, inputDims } = this.hp;
    const table = { inputDims: numClasses, outputDims: inputDims, paramsInit: Gaussian.config() };
    this.#embedding = this.createChild('embedding', Linear.config(table));
  }

  protected override uncappedLogits(inputs: Tensor): Tensor {
    const scaled = tf.mul(inputs, this.hp.inputDims ** -0.5);
    return tf.matMul(scaled, this.#embedding.theta.w, false, true);
  }

  override getLogits(inputs: Tensor): Tensor {
    const logits = super.getLogits(inputs);
    const { logitsAbsMax } = this.hp;
    return logitsAbsMax > 0 ? tf.clipByValue(logits, -logitsAbsMax, logitsAbsMax) : logits;
  }

  /** The probability moves to all classes, the label's among them. */
  protected override smoothing(): { readonly label: number; readonly other: number } | null {
    const { labelSmoothingProb, numClasses } = this.hp;
    if (super.smoothing() === null) return null;
    const other = labelSmoothingProb / numClasses;
    return { label: 1 - labelSmoothingProb + other, other };
  }

  protected override avgXentWeight(classWeights: Tensor, totalWeight: Tensor): Tensor {
    return this.hp.useTgtLabelsSizeAsLossDenominator ? tf.scalar(classWeights.size) : totalWeight;
  }

  /** int32 ids [...] to [..., inputDims]. */
  embLookup(ids: Tensor): Tensor {
    return this.shard(lookUp(this.#embedding.theta.w, ids, this.hp), 'emb_out');
  }
}
