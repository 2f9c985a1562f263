/** @file ClassificationModel: a network and a softmax over classes, of images or texts (praxis/layers/models.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { sub } from '../hparams/index.js';
import {
  auxLossOf,
  BaseLayer,
  BaseSoftmax,
  FullSoftmax,
  ResNet,
  type SoftmaxOutput,
  TransformerTextEncoder,
  withAuxLoss,
} from '../layers/index.js';
import { BaseModel, type ReadIds, type TensorBatch, type WeightedScalars } from './baseModel.js';
import { meansBy, topKHits } from './batchMetrics.js';

/** Layers that map an input, with its paddings where it has any, to features [B, D]. */
type Network = BaseLayer & { fprop(inputs: Tensor, paddings?: Tensor): Tensor };

/** Predictions of a classifier. */
interface ClassPredictions extends SoftmaxOutput {
  /** The network's outputs, [B, D]. */
  readonly features: Tensor;
}

/**
 * Classifies each row of a batch.
 *
 * Batches have the input, the labels, which are ids (int32 [B]) or shares of the classes (float32 [B, classes], each row of
 * which sums to 1), and, where some rows are padding, weights (float32 [B]).
 */
export class ClassificationModel extends BaseModel.with({
  networkTpl: sub(BaseLayer, () => ResNet.config()).describe(
    'The network: `fprop` maps the input to features [B, D].',
  ),
  softmaxTpl: sub(BaseSoftmax, () => FullSoftmax.config()).describe('The softmax over the classes.'),
  inputField: z.string().min(1).default('image').describe("Name of the batch's images, tokens or the like."),
  paddingsField: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe("Name of the input's paddings, the network's second argument; null: none."),
  labelField: z.string().min(1).default('label_probs').describe("Name of the batch's labels."),
}) {
  #network!: Network;
  #softmax!: BaseSoftmax;

  protected override setup(): void {
    this.#network = this.createChild('network', this.hp.networkTpl) as Network;
    this.#softmax = this.createChild('softmax', this.hp.softmaxTpl);
  }

  override get readIds(): readonly ReadIds[] {
    const network: BaseLayer = this.#network;
    if (!(network instanceof TransformerTextEncoder)) return [];
    return [{ path: this.hp.inputField, count: network.hp.vocabSize, field: 'networkTpl.vocabSize' }];
  }

  override get labelIds(): readonly ReadIds[] {
    const { labelField, softmaxTpl } = this.hp;
    return [{ path: labelField, count: softmaxTpl.numClasses, field: 'softmaxTpl.numClasses' }];
  }

  /** The labels, as ids or as shares. @throws LayerError for another shape */
  #labels(batch: TensorBatch): { readonly ids?: Tensor; readonly probabilities?: Tensor } {
    const { labelField, softmaxTpl } = this.hp;
    const labels = this.tensorOf(batch, labelField);
    const [rows] = this.tensorOf(batch, this.hp.inputField).shape;
    if (labels.rank === 1 && labels.dtype === 'int32' && labels.shape[0] === rows) return { ids: labels };
    if (labels.shape.join() === `${rows},${softmaxTpl.numClasses}`)
      return { probabilities: tf.cast(labels, 'float32') };
    throw this.error(
      `'${labelField}' is ${labels.dtype} [${labels.shape.join(', ')}]: expected ids, int32 [${rows}], or shares of ` +
        `softmaxTpl.numClasses classes, float32 [${rows}, ${softmaxTpl.numClasses}].`,
    );
  }

  override computePredictions(batch: TensorBatch): ClassPredictions {
    const { inputField, paddingsField } = this.hp;
    const inputs = this.tensorOf(batch, inputField);
    const paddings = paddingsField === null ? undefined : this.tensorOf(batch, paddingsField);
    const features = paddings ? this.#network.fprop(inputs, paddings) : this.#network.fprop(inputs);
    const { ids = null, probabilities } = this.#labels(batch);
    const weights = this.rowWeights(batch, inputs.shape[0]!);
    return { features, ...this.#softmax.fprop(features, weights, ids, probabilities) };
  }

  /**
   * Metrics: total_loss, which is avg_xent with the losses that layers add; avg_xent, num_predictions, accuracy and error, and,
   * where there are more than 5 classes, acc5 and error5, by whether the label is among the 5 likeliest. Per example: labels,
   * and the logits, as `scores` too.
   */
  override computeLoss(
    { logits, avgXent, avgXentWeight, totalWeight }: ClassPredictions,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const labels = this.#labels(batch);
    const ids = labels.ids ?? (tf.argMax(labels.probabilities!, -1) as Tensor);
    const mean = meansBy(this.rowWeights(batch, logits.shape[0]!));
    const accuracies = (k: number, accuracy: string, error: string): WeightedScalars => {
      const [share, weight] = mean(tf.cast(topKHits(logits, ids, k), 'float32'));
      this.addSummary(`acc${k}`, () => share);
      return { [accuracy]: [share, weight], [error]: [tf.sub(1, share), weight] };
    };
    const metrics: WeightedScalars = {
      total_loss: [withAuxLoss(avgXent, auxLossOf(this)), totalWeight],
      avg_xent: [avgXent, avgXentWeight],
      num_predictions: [totalWeight, tf.scalar(1)],
      ...accuracies(1, 'accuracy', 'error'),
      ...(logits.shape.at(-1)! > 5 && accuracies(5, 'acc5', 'error5')),
    };
    return [metrics, { labels: this.tensorOf(batch, this.hp.labelField), scores: logits, logits }];
  }
}
