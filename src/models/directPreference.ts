/** @file Direct preference optimization: a network against its frozen reference, on pairs of answers (praxis/layers/models.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { sub } from '../hparams/index.js';
import {
  isWeighed,
  softplus,
  TransformerEncoderDecoder,
  TransformerLm,
  weightedSum,
  withAuxLoss,
} from '../layers/index.js';
import type { ReadIds, TensorBatch, WeightedScalars } from './baseModel.js';
import { meansBy } from './batchMetrics.js';
import { MDL, REF_MDL, ReferencedModel } from './referencedModel.js';

/** Log-probabilities of the answers of B pairs, [B], and the losses that layers added. */
interface PairLogProbs {
  readonly chosen: Tensor;
  readonly rejected: Tensor;
  readonly refChosen: Tensor;
  readonly refRejected: Tensor;
  readonly auxLoss: Tensor | null;
}

/** The halves of a batch of pairs. */
const HALVES = ['chosen', 'rejected'] as const;
type Half = (typeof HALVES)[number];

/**
 * A network that learns from pairs of answers (Rafailov et al., 2023): −log σ(β((log π(y_w) − log π_ref(y_w)) −
 * (log π(y_l) − log π_ref(y_l)))), where y_w is the chosen answer and y_l the rejected one. Pairs of padding, without any weight,
 * do not count.
 */
abstract class PreferenceModel extends ReferencedModel.with({
  beta: z
    .number()
    .positive()
    .default(0.1)
    .describe('β: the larger, the closer the network stays to the reference.'),
}) {
  static override readonly isAbstract = true;

  override get readIds(): readonly ReadIds[] {
    return this.#inHalf('chosen', super.readIds);
  }

  override get labelIds(): readonly ReadIds[] {
    return [
      ...this.#inHalf('chosen', super.labelIds),
      ...this.#inHalf('rejected', [...super.readIds, ...super.labelIds]),
    ];
  }

  #inHalf(half: Half, ids: readonly ReadIds[]): ReadIds[] {
    return ids.map((each) => ({ ...each, path: this.#pathIn(half, each.path) }));
  }

  /** The path in a batch of an array of the network: that of a source belongs to both answers. */
  #pathIn(half: Half, name: string): string {
    const { source, target } = this.network.nested ?? {};
    if (source !== undefined && name.startsWith(`${source}.`)) return name;
    return `${half}.${target === undefined ? name : name.slice(target.length + 1)}`;
  }

  override computePredictions(batch: TensorBatch): PairLogProbs {
    // One pass over both halves, chosen answers first.
    const arrays = (name: string): Tensor => this.#ofBoth(batch, name);
    const halves = (logProbs: Tensor): [Tensor, Tensor] => tf.split(logProbs, 2) as [Tensor, Tensor];
    const { perSequenceXent, auxLoss } = this.predict(arrays);
    const weights = tf.concat(HALVES.map((half) => this.tensorOf(batch, `${half}.weights`)));
    const reference = weightedSum(this.referenceLogProbs(arrays), weights, -1);
    const [chosen, rejected] = halves(tf.neg(perSequenceXent));
    const [refChosen, refRejected] = halves(reference);
    return { chosen, rejected, refChosen, refRejected, auxLoss };
  }

  /**
   * Metrics: total_loss, p_correct_ranking (the mean of σ), ranking_accuracy (the share of pairs whose σ is above a half) and
   * delta_r_hat, the mean margin of the rewards. Per example: delta_r_hat [B]. Summaries are dpo/….
   */
  override computeLoss(
    { chosen, rejected, refChosen, refRejected, auxLoss }: PairLogProbs,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const isWhole = HALVES.map((half) => tf.any(isWeighed(this.tensorOf(batch, `${half}.weights`)), -1));
    const mean = meansBy(tf.cast(tf.logicalAnd(isWhole[0]!, isWhole[1]!), 'float32'));
    const { beta } = this.hp;
    const reward = (policy: Tensor, reference: Tensor): Tensor => tf.mul(tf.sub(policy, reference), beta);
    const rewards = { r_hat_y_w: reward(chosen, refChosen), r_hat_y_l: reward(rejected, refRejected) };
    const delta = tf.sub(rewards.r_hat_y_w, rewards.r_hat_y_l) as Tensor;
    const [loss, weight] = mean(softplus(tf.neg(delta)));
    const summaries = {
      ...{
        y_w_ref_log_p: refChosen,
        y_w_pi_log_p: chosen,
        y_l_ref_log_p: refRejected,
        y_l_pi_log_p: rejected,
      },
      ...rewards,
      delta_r_hat: delta,
    };
    for (const [name, values] of Object.entries(summaries)) {
      const [average] = mean(values);
      this.addSummary(`dpo/${name}`, () => average);
      if (!name.endsWith('log_p'))
        this.addSummary(`dpo/${name}_std`, () => tf.sqrt(mean(tf.square(tf.sub(values, average)))[0]));
    }
    this.addSummary('dpo/dpo_loss', () => loss);
    const metrics: WeightedScalars = {
      total_loss: [withAuxLoss(loss, auxLoss), weight],
      p_correct_ranking: mean(tf.sigmoid(delta)),
      ranking_accuracy: mean(tf.cast(tf.greater(delta, 0), 'float32')),
      delta_r_hat: mean(delta),
    };
    return [metrics, { delta_r_hat: delta }];
  }

  /** An array of the network for both halves, or of their source. @throws LayerError where shapes differ */
  #ofBoth(batch: TensorBatch, name: string): Tensor {
    const paths = HALVES.map((half) => this.#pathIn(half, name));
    const [chosen, rejected] = paths.map((path) => this.tensorOf(batch, path)) as [Tensor, Tensor];
    if (chosen === rejected) return chosen;
    if (chosen.shape.join() === rejected.shape.join()) return tf.concat([chosen, rejected], 0);
    const [a, b] = [chosen, rejected].map(({ shape }) => `[${shape.join(', ')}]`);
    throw this.error(`${paths[0]} is ${a} and ${paths[1]} ${b}; expected equal shapes.`);
  }
}

/**
 * A language model on pairs of answers. Batches have `chosen` and `rejected`, each with the arrays of a LanguageModel, as
 * PreferenceFeatures makes them.
 */
export class LanguageModelDPO extends PreferenceModel.with({
  mdl: sub(TransformerLm).describe(MDL),
  refMdl: sub(TransformerLm).nullable().default(null).describe(REF_MDL),
}) {}

/**
 * An encoder-decoder on pairs of answers to one source. Batches have `src`, `chosen` and `rejected`, each with the arrays of one
 * half of a SequenceModel's batch, as SequencePreferenceFeatures makes them. Sources are encoded once. It decodes the batches of a
 * SequenceModel.
 */
export class SequenceModelDPO extends PreferenceModel.with({
  mdl: sub(TransformerEncoderDecoder).describe(MDL),
  refMdl: sub(TransformerEncoderDecoder).nullable().default(null).describe(REF_MDL),
}) {}
