/** @file LanguageModel: next-token prediction with Pax's metrics (praxis/layers/models.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import type { Decodable } from '../decoding/index.js';
import { sub } from '../hparams/index.js';
import {
  type DecodeStateSpec,
  decodeStateSpecs,
  type LmOutput,
  type StepArgs,
  TransformerLm,
} from '../layers/index.js';
import { BaseModel, type TensorBatch, type WeightedScalars, weightedAccuracy } from './baseModel.js';

/**
 * A language model.
 *
 * Batches have ids, labels (int32 [B, T]), weights and paddings (float32 [B, T]), and, where the input is packed,
 * segmentIds and segmentPos (int32 [B, T]); for a prefix model also inputsIndicator (float32 [B, T]), 1 for the leading tokens that
 * all see.
 */
export class LanguageModel
  extends BaseModel.with({
    lmTpl: sub(TransformerLm).describe('The network.'),
    returnPredictions: z
      .boolean()
      .default(false)
      .describe('Whether per-example output has the logits and predicted ids too.'),
  })
  implements Decodable
{
  #lm!: TransformerLm;

  protected override setup(): void {
    this.#lm = this.createChild('lm', this.hp.lmTpl);
  }

  override computePredictions(batch: TensorBatch): LmOutput {
    return this.#lm.fprop(
      {
        ids: this.tensorOf(batch, 'ids'),
        paddings: batch.paddings,
        segmentIds: batch.segmentIds,
        segmentPos: batch.segmentPos,
        inputsIndicator: batch.inputsIndicator,
      },
      { classIds: this.tensorOf(batch, 'labels'), classWeights: this.tensorOf(batch, 'weights') },
    );
  }

  /**
   * Metrics: total_loss, avg_xent, aux_loss, log_pplx (nats a token), fraction_of_correct_next_step_preds and
   * num_predictions. Per example: labels [B, T] and scores [B], the log-probability of each sequence.
   */
  override computeLoss(
    predictions: LmOutput,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const labels = this.tensorOf(batch, 'labels');
    const { totalLoss, avgXent, auxLoss, totalWeight, avgXentWeight, perExampleArgmax } = predictions;
    const weights = this.tensorOf(batch, 'weights');
    const accuracy = weightedAccuracy(perExampleArgmax, labels, weights, totalWeight);
    const one = tf.scalar(1);
    const metrics: WeightedScalars = {
      total_loss: [totalLoss, totalWeight],
      avg_xent: [avgXent, avgXentWeight],
      aux_loss: [auxLoss ?? tf.scalar(0), one],
      log_pplx: [avgXent, avgXentWeight],
      fraction_of_correct_next_step_preds: [accuracy, totalWeight],
      num_predictions: [totalWeight, one],
    };
    const perExample = { labels, scores: tf.neg(predictions.perSequenceXent) as Tensor };
    if (!this.hp.returnPredictions) return [metrics, perExample];
    return [metrics, { ...perExample, logits: predictions.logits, predicted_ids: perExampleArgmax }];
  }

  get vocabSize(): number {
    return this.hp.lmTpl.vocabSize;
  }

  initialDecodeState(batchSize: number, seqLen: number): Record<string, DecodeStateSpec> {
    return decodeStateSpecs(this, batchSize, seqLen);
  }

  extendStep(ids: Tensor, args: StepArgs): Tensor {
    return this.#lm.extendStep(ids, args);
  }
}
