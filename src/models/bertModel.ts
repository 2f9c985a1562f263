/** @file BertModel: predicts masked tokens from both sides (praxis/layers/models.py; Devlin et al., 2018). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { type Config, type Report, sub } from '../hparams/index.js';
import { type LmOutput, MaskedLmDataAugmenter, TransformerLm } from '../layers/index.js';
import {
  BaseModel,
  type ReadIds,
  type RowSettings,
  type TensorBatch,
  type WeightedScalars,
} from './baseModel.js';
import { labelSmoothingField, smoothed } from './labelSmoothing.js';
import { tokenMetrics } from './tokenMetrics.js';

/** Predictions of masked tokens. */
interface MaskedOutput extends LmOutput {
  /** int32 [B, T]: the tokens that the network saw. */
  readonly augmentedLabels: Tensor;
  /** float32 [B, T]: 1 for tokens that are predicted. */
  readonly augmentedPos: Tensor;
}

/**
 * Hides some tokens of each sequence, and predicts them.
 *
 * Batches have labels, the tokens (int32 [B, T]), paddings (float32 [B, T]), segmentIds and segmentPos (int32 [B, T]), and
 * tokenTypes (int32 [B, T]) where tokens have types. Where they have maskedIds (int32 [B, T]) and maskedPos (float32 [B, T], 1 for
 * tokens to predict), these are the masks; else they are drawn: in training at each step anew, in evaluation the same ones each
 * time.
 */
export class BertModel extends BaseModel.with({
  lmTpl: sub(TransformerLm, () =>
    TransformerLm.config({ modelType: 'bidirectional', packedInput: true }),
  ).describe('The network, bidirectional and of packed input.'),
  labelSmoothingProb: labelSmoothingField('lmTpl'),
  maskTokenId: z.int().nonnegative().default(0).describe('Id that stands for a hidden token.'),
  forceMaskGeneration: z
    .boolean()
    .default(false)
    .describe('Whether masks are drawn even where a batch has some.'),
}) {
  #lm!: TransformerLm;
  #augmenter!: MaskedLmDataAugmenter;

  static override validate({ lmTpl, maskTokenId }: Config<BertModel>, report: Report): void {
    if (lmTpl.modelType !== 'bidirectional') report("expected 'bidirectional'", 'lmTpl.modelType');
    if (!lmTpl.packedInput) report('expected true', 'lmTpl.packedInput');
    if (maskTokenId >= lmTpl.vocabSize)
      report(`expected an id below lmTpl.vocabSize (${lmTpl.vocabSize})`, 'maskTokenId');
  }

  protected override setup(): void {
    const { lmTpl, labelSmoothingProb, maskTokenId } = this.hp;
    const softmaxTpl = smoothed(lmTpl.softmaxTpl, labelSmoothingProb);
    this.#lm = this.createChild('lm', lmTpl, { softmaxTpl });
    const { vocabSize } = lmTpl;
    this.#augmenter = this.createChild(
      'mlm_augmenter',
      MaskedLmDataAugmenter.config({ vocabSize, maskTokenId }),
    );
  }

  override get readIds(): readonly ReadIds[] {
    return [{ path: 'labels', count: this.hp.lmTpl.vocabSize, field: 'lmTpl.vocabSize' }];
  }

  override get labelIds(): readonly ReadIds[] {
    return this.readIds.map((ids) => ({ ...ids, path: 'maskedIds' }));
  }

  /** Labels are hidden by the model, whatever sees them in the batch. */
  override get rowSettings(): RowSettings {
    return { field: 'lmTpl', packedInput: this.hp.lmTpl.packedInput };
  }

  override computePredictions(batch: TensorBatch): MaskedOutput {
    const labels = this.tensorOf(batch, 'labels');
    const paddings = this.tensorOf(batch, 'paddings');
    const given = this.hp.forceMaskGeneration ? undefined : batch.maskedIds;
    const { inputs, mask } = given
      ? { inputs: given, mask: this.tensorOf(batch, 'maskedPos') }
      : this.#augmenter.fprop(labels, paddings);
    const { segmentIds, segmentPos, tokenTypes } = batch;
    const output = this.#lm.fprop(
      { ids: inputs, paddings, segmentIds, segmentPos, tokenTypes },
      { classIds: labels, classWeights: mask },
    );
    return { ...output, augmentedLabels: inputs, augmentedPos: mask };
  }

  /**
   * Metrics: total_loss, avg_xent, aux_loss, log_pplx (nats a masked token), fraction_of_correct_preds, num_predictions, num_tokens
   * and num_seqs. Per example: labels, per_sequence_xent [B], predicted_labels and augmented_labels [B, T].
   */
  override computeLoss(
    predictions: MaskedOutput,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const labels = this.tensorOf(batch, 'labels');
    const { augmentedPos: weights, augmentedLabels, perExampleArgmax, perSequenceXent } = predictions;
    const kept = tf.less(this.tensorOf(batch, 'paddings'), 0.5);
    const sequences = tf.sum(tf.max(this.tensorOf(batch, 'segmentIds'), 1));
    const metrics: WeightedScalars = {
      ...tokenMetrics(predictions, { labels, weights }, 'fraction_of_correct_preds'),
      aux_loss: [predictions.auxLoss ?? tf.scalar(0), predictions.totalWeight],
      num_tokens: [tf.sum(tf.cast(kept, 'float32')), tf.scalar(1)],
      num_seqs: [tf.cast(sequences, 'float32'), tf.scalar(1)],
    };
    const perExample = {
      ...{ labels, per_sequence_xent: perSequenceXent, predicted_labels: perExampleArgmax },
      augmented_labels: augmentedLabels,
    };
    return [metrics, perExample];
  }
}
