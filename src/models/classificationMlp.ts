/** @file ClassificationMLPModel: a minimal model of single tokens, for tests (praxis/layers/models.py). */
import { type Tensor, tf } from '../compiler/index.js';
import { sub } from '../hparams/index.js';
import { MLPBlock, SharedEmbeddingSoftmax, type SoftmaxOutput } from '../layers/index.js';
import {
  BaseModel,
  type ReadIds,
  type TensorBatch,
  type WeightedScalars,
  weightedAccuracy,
} from './baseModel.js';

/**
 * Predicts each token itself: embedding, feed-forward layers, softmax. Batches are LanguageModel's.
 *
 * Pax's class of this name minimises an accuracy, which has no gradient; this one minimises the cross entropy.
 */
export class ClassificationMLPModel extends BaseModel.with({
  mlpTpl: sub(MLPBlock).describe('The feed-forward layers.'),
  softmaxTpl: sub(SharedEmbeddingSoftmax).describe('The embedding, and the softmax over the tokens.'),
}) {
  #mlp!: MLPBlock;
  #softmax!: SharedEmbeddingSoftmax;

  protected override setup(): void {
    // Pax's name, from when there were several.
    this.#mlp = this.createChild('mlp_layers_0', this.hp.mlpTpl);
    this.#softmax = this.createChild('softmax', this.hp.softmaxTpl);
  }

  override get readIds(): readonly ReadIds[] {
    return [{ path: 'ids', count: this.hp.softmaxTpl.numClasses, field: 'softmaxTpl.numClasses' }];
  }

  override computePredictions(batch: TensorBatch): SoftmaxOutput {
    const ids = this.tensorOf(batch, 'ids');
    const outputs = this.#mlp.fprop(this.#softmax.embLookup(ids));
    return this.#softmax.fprop(outputs, this.tensorOf(batch, 'weights'), ids);
  }

  /** Metrics: total_loss, avg_xent, accuracy and num_predictions; nothing per example. */
  override computeLoss(
    { avgXent, totalWeight, perExampleArgmax }: SoftmaxOutput,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const weights = this.tensorOf(batch, 'weights');
    const accuracy = weightedAccuracy(perExampleArgmax, this.tensorOf(batch, 'ids'), weights, totalWeight);
    const metrics: WeightedScalars = {
      total_loss: [avgXent, totalWeight],
      avg_xent: [avgXent, totalWeight],
      accuracy: [accuracy, totalWeight],
      num_predictions: [totalWeight, tf.scalar(1)],
    };
    return [metrics, {}];
  }
}
