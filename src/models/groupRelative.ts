/** @file Group relative policy optimization: a network that learns from rewards of its own samples (Shao et al., 2024). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { sub } from '../hparams/index.js';
import { isWeighed, selected, TransformerLm, weightedSum, withAuxLoss } from '../layers/index.js';
import type { TensorBatch, WeightedScalars } from './baseModel.js';
import { meansBy } from './batchMetrics.js';
import { MDL, REF_MDL, ReferencedModel } from './referencedModel.js';

/** Log-probabilities of the labels; those of the reference are null where there is none. */
interface PolicyLogProbs {
  /** [B, T]. */
  readonly policy: Tensor;
  readonly reference: Tensor | null;
  readonly auxLoss: Tensor | null;
}

/**
 * A language model that learns from rewards of answers that it has sampled itself. A token of an answer with the advantage A and
 * the ratio r of its probabilities now and when it was sampled has the loss −min(r A, clip(r, 1 − ε, 1 + ε) A) + β k₃, where
 * k₃ = π_ref/π − log(π_ref/π) − 1 estimates the divergence from the reference; answers count alike, tokens of one too.
 *
 * Batches are those of a RolloutInput: the arrays of a LanguageModel, `oldLogProbs` [B, T], and `advantages` and `rewards` [B].
 */
export class LanguageModelGRPO extends ReferencedModel.with({
  mdl: sub(TransformerLm).describe(MDL),
  refMdl: sub(TransformerLm).nullable().default(null).describe(REF_MDL),
  beta: z
    .number()
    .nonnegative()
    .default(0.04)
    .describe('β: weight of the divergence from the reference; 0: there is no reference.'),
  clipEpsilon: z
    .number()
    .positive()
    .default(0.2)
    .describe('ε: how far from 1 a ratio may be before it stops counting.'),
}) {
  protected override get isReferenced(): boolean {
    return this.hp.beta > 0;
  }

  override computePredictions(batch: TensorBatch): PolicyLogProbs {
    const arrays = (name: string): Tensor => this.tensorOf(batch, name);
    const { perExampleXent, auxLoss } = this.predict(arrays);
    const reference = this.isReferenced ? this.referenceLogProbs(arrays) : null;
    return { policy: tf.neg(perExampleXent), reference, auxLoss };
  }

  /**
   * Metrics, means over answers: total_loss, reward, kl (k₃; where there is a reference), clip_fraction (of tokens) and
   * answer_length. Per example: rewards [B].
   */
  override computeLoss(
    { policy, reference, auxLoss }: PolicyLogProbs,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const { beta, clipEpsilon } = this.hp;
    const weights = this.tensorOf(batch, 'weights');
    const counts = isWeighed(weights);
    const lengths = tf.sum(weights, -1) as Tensor;
    const perAnswer = (values: Tensor): Tensor =>
      tf.div(weightedSum(values, weights, -1), tf.maximum(lengths, 1));
    const mean = meansBy(tf.cast(tf.any(counts, -1), 'float32'));
    const rewards = this.tensorOf(batch, 'rewards');
    const advantages = tf.expandDims(this.tensorOf(batch, 'advantages'), -1);
    const ratio = tf.exp(selected(tf.sub(policy, this.tensorOf(batch, 'oldLogProbs')), counts));
    const clipped = tf.clipByValue(ratio, 1 - clipEpsilon, 1 + clipEpsilon);
    const objective = tf.minimum(tf.mul(ratio, advantages), tf.mul(clipped, advantages));
    const isClipped = tf.cast(tf.notEqual(ratio, clipped), 'float32');
    const [gain, weight] = mean(perAnswer(objective));
    const divergence = reference && mean(perAnswer(k3(policy, reference, counts)));
    const loss = divergence ? tf.sub(tf.mul(divergence[0], beta), gain) : tf.neg(gain);
    const metrics: WeightedScalars = {
      total_loss: [withAuxLoss(loss, auxLoss), weight],
      reward: mean(rewards),
      ...(divergence && { kl: divergence }),
      clip_fraction: mean(perAnswer(isClipped)),
      answer_length: mean(lengths),
    };
    return [metrics, { rewards }];
  }
}

/** π_ref/π − log(π_ref/π) − 1 of each token (Schulman, 2020): without bias, and never below 0. */
function k3(policy: Tensor, reference: Tensor, counts: Tensor): Tensor {
  const logRatio = selected(tf.sub(reference, policy), counts);
  return tf.sub(tf.sub(tf.exp(logRatio), logRatio), 1);
}
