/** @file TextEmbeddingModel: a vector of each text, trained by contrast of pairs (Reimers and Gurevych, 2019, "Sentence-BERT"). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { sub } from '../hparams/index.js';
import {
  auxLossOf,
  isWeighed,
  l2Normalized,
  selected,
  TransformerTextEncoder,
  withAuxLoss,
} from '../layers/index.js';
import { BaseModel, type ReadIds, type TensorBatch, type WeightedScalars } from './baseModel.js';
import { meansBy } from './batchMetrics.js';
import { contrastOf } from './contrast.js';

/** Vectors of texts. */
interface Embedded {
  /** [B, D]. */
  readonly embeddings: Tensor;
  /** [B, B]: similarity of each text and each partner, by the temperature. Where the batch has partners. */
  readonly logits?: Tensor;
}

/**
 * Embeds texts. In training, each text is to be the most similar to its own partner, such as a question to its answer, of all
 * partners of the batch (multiple negatives ranking).
 *
 * Batches have `text` with ids (int32 [B, T]) and paddings (float32 [B, T]), as `TextFeature` makes them; in training and
 * evaluation also `positive`, the partners, with ids and paddings, and, where some rows are padding, weights (float32 [B]).
 */
export class TextEmbeddingModel extends BaseModel.with({
  encoderTpl: sub(TransformerTextEncoder).describe('The encoder of texts and of their partners.'),
  normalized: z.boolean().default(true).describe('Whether embeddings have unit length.'),
  temperature: z.number().positive().default(0.05).describe('Divides similarities in the loss.'),
}) {
  #encoder!: TransformerTextEncoder;

  protected override setup(): void {
    this.#encoder = this.createChild('encoder', this.hp.encoderTpl);
  }

  override get readIds(): readonly ReadIds[] {
    const { vocabSize: count } = this.hp.encoderTpl;
    return ['text.ids', 'positive.ids'].map((path) => ({ path, count, field: 'encoderTpl.vocabSize' }));
  }

  #embed(batch: TensorBatch, half: 'text' | 'positive'): Tensor {
    const [ids, paddings] = [this.tensorOf(batch, `${half}.ids`), this.tensorOf(batch, `${half}.paddings`)];
    const { weights } = batch;
    const vectors = this.#encoder.fprop(ids, paddings);
    // The values in rows of padding reach no gradient of others.
    const real = weights ? selected(vectors, tf.expandDims(isWeighed(weights), -1)) : vectors;
    return this.hp.normalized ? l2Normalized(real, [-1]) : real;
  }

  override computePredictions(batch: TensorBatch): Embedded {
    const embeddings = this.#embed(batch, 'text');
    if (batch.positive === undefined) return { embeddings };
    const similarities = tf.matMul(embeddings, this.#embed(batch, 'positive'), false, true);
    return { embeddings, logits: tf.div(similarities, this.hp.temperature) };
  }

  /**
   * Metrics: total_loss, the mean cross entropy of a text's own partner, with the losses that layers add; contrastive_loss without
   * them; accuracy, how often that partner is the most similar one. Per example: the embeddings.
   */
  override computeLoss(
    { embeddings, logits }: Embedded,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    if (logits === undefined)
      throw this.error("the batch has no 'positive': expected the partners of its texts, to learn from.");
    const weights = this.rowWeights(batch, logits.shape[0]!);
    const mean = meansBy(weights);
    const { losses, hits } = contrastOf(logits, weights);
    const [contrastive, weight] = mean(losses);
    const metrics: WeightedScalars = {
      total_loss: [withAuxLoss(contrastive, auxLossOf(this)), weight],
      contrastive_loss: [contrastive, weight],
      accuracy: mean(hits),
    };
    return [metrics, { embeddings }];
  }
}
