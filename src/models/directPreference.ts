/** @file Direct preference optimization: a network against its frozen reference, on pairs of answers (praxis/layers/models.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { isWeighed, softplus, weightedSum, withAuxLoss } from '../layers/index.js';
import type { TensorBatch, WeightedScalars } from './baseModel.js';
import { meansBy } from './batchMetrics.js';
import { ReferencedLm } from './referencedLm.js';

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

/**
 * A language model that learns from pairs of answers (Rafailov et al., 2023): −log σ(β((log π(y_w) − log π_ref(y_w)) −
 * (log π(y_l) − log π_ref(y_l)))), where y_w is the chosen answer and y_l the rejected one.
 *
 * Batches have `chosen` and `rejected`, each with the arrays of a LanguageModel, as PreferenceFeatures makes them. Pairs of
 * padding, without any weight, do not count.
 */
export class LanguageModelDPO extends ReferencedLm.with({
  beta: z
    .number()
    .positive()
    .default(0.1)
    .describe('β: the larger, the closer the network stays to the reference.'),
}) {
  protected override readonly idsPath = 'chosen.ids';

  override computePredictions(batch: TensorBatch): PairLogProbs {
    // One pass over both halves, chosen answers first.
    const arrays = (name: string): Tensor => this.#ofBoth(batch, name);
    const halves = (logProbs: Tensor): [Tensor, Tensor] => tf.split(logProbs, 2) as [Tensor, Tensor];
    const { perSequenceXent, auxLoss } = this.predict(arrays);
    const reference = weightedSum(this.referenceLogProbs(arrays), arrays('weights'), -1);
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

  /** An array of both halves. @throws LayerError where their shapes differ */
  #ofBoth(batch: TensorBatch, name: string): Tensor {
    const [chosen, rejected] = HALVES.map((half) => this.tensorOf(batch, `${half}.${name}`)) as [
      Tensor,
      Tensor,
    ];
    if (chosen.shape.join() === rejected.shape.join()) return tf.concat([chosen, rejected], 0);
    const [a, b] = [chosen, rejected].map(({ shape }) => `[${shape.join(', ')}]`);
    throw this.error(`chosen.${name} is ${a} and rejected.${name} ${b}; expected equal shapes.`);
  }
}
