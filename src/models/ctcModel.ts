/** @file CtcModel: symbols of unaligned frames, such as the letters of speech (Graves et al., 2006). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { type Config, type Report, sub } from '../hparams/index.js';
import {
  auxLossOf,
  BaseSoftmax,
  ConformerEncoder,
  ctcGreedyIds,
  ctcLoss,
  FullSoftmax,
  isWeighed,
  withAuxLoss,
} from '../layers/index.js';
import { BaseModel, type ReadIds, type TensorBatch, type WeightedScalars } from './baseModel.js';
import { meansBy } from './batchMetrics.js';

/** Predictions of frames. */
interface FramePredictions {
  /** [B, T', K]. */
  readonly logits: Tensor;
  /** [B, T'], 1 for padding. */
  readonly logitPaddings: Tensor;
  /** int32 [B, T']: the symbol that begins at each frame on the likeliest path, blankId where none does. */
  readonly predictedIds: Tensor;
}

/**
 * An encoder of frames, and a softmax over symbols of which one is the blank.
 *
 * Batches have inputs (float32 [B, T, D]) and labels (int32 [B, N], without blanks; symbols in padded places too), and, where sequences are of several lengths,
 * paddings [B, T] and labelPaddings [B, N], 1 for padding, and weights of rows (float32 [B]).
 */
export class CtcModel extends BaseModel.with({
  encoderTpl: sub(ConformerEncoder).describe('The encoder.'),
  softmaxTpl: sub(BaseSoftmax, () => FullSoftmax.config()).describe(
    'The map to symbols, as many as its numClasses; its inputDims are the depth of the encoder.',
  ),
  blankId: z.int().nonnegative().default(0).describe('Symbol of frames that emit nothing.'),
}) {
  #encoder!: ConformerEncoder;
  #softmax!: BaseSoftmax;

  static override validate({ blankId, softmaxTpl }: Config<CtcModel>, report: Report): void {
    if (blankId >= softmaxTpl.numClasses)
      report(`expected an id below softmaxTpl.numClasses (${softmaxTpl.numClasses})`, 'blankId');
  }

  protected override setup(): void {
    const { encoderTpl, softmaxTpl } = this.hp;
    this.#encoder = this.createChild('encoder', encoderTpl);
    this.#softmax = this.createChild('softmax', softmaxTpl, { inputDims: encoderTpl.modelDims });
  }

  override get readIds(): readonly ReadIds[] {
    const { softmaxTpl, blankId } = this.hp;
    const reserved = { id: blankId, what: 'the blank', field: 'blankId', paddings: 'labelPaddings' };
    return [{ path: 'labels', count: softmaxTpl.numClasses, field: 'softmaxTpl.numClasses', reserved }];
  }

  override computePredictions(batch: TensorBatch): FramePredictions {
    const { features, paddings } = this.#encoder.fprop(this.tensorOf(batch, 'inputs'), batch.paddings);
    const logits = this.#softmax.getLogits(features);
    const predictedIds = ctcGreedyIds(logits, paddings, this.hp.blankId);
    return { logits, logitPaddings: paddings, predictedIds };
  }

  /**
   * Metrics: total_loss, which is avg_ctc (nats a sequence) with the losses that layers add, of the sequences with as many frames as
   * their labels need; aligned_fraction, the share of these; num_labels. Per example: labels and label_paddings [B, N],
   * predicted_ids [B, T'], and scores [B], the log-probability of each sequence of labels.
   */
  override computeLoss(
    { logits, logitPaddings, predictedIds }: FramePredictions,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    // The gather checks the batch's labels, and names one that is out of range.
    const symbols = tf.range(0, logits.shape.at(-1)!, 1, 'int32') as Tensor;
    const labels = tf.gather(symbols, this.tensorOf(batch, 'labels') as tf.Tensor1D) as Tensor;
    const [rows] = labels.shape as [number, number];
    const labelPaddings = batch.labelPaddings ?? (tf.zeros(labels.shape) as Tensor);
    const weights = this.rowWeights(batch, rows);
    const { blankId } = this.hp;
    const losses = ctcLoss({ logits, logitPaddings, labels, labelPaddings }, { blankId });
    const fits = tf.cast(tf.lessEqual(neededFrames(labels, labelPaddings), frames(logitPaddings)), 'float32');
    const counted = tf.where(isWeighed(weights), tf.mul(weights, fits), 0) as Tensor;
    const [loss, weight] = meansBy(counted)(losses);
    const metrics: WeightedScalars = {
      total_loss: [withAuxLoss(loss, auxLossOf(this)), weight],
      avg_ctc: [loss, weight],
      aligned_fraction: meansBy(weights)(fits),
      num_labels: [
        tf.sum(tf.mul(frames(labelPaddings), tf.cast(isWeighed(weights), 'float32'))),
        tf.scalar(1),
      ],
    };
    const perExample = {
      ...{ labels, label_paddings: labelPaddings, predicted_ids: predictedIds },
      scores: tf.neg(losses) as Tensor,
    };
    return [metrics, perExample];
  }
}

/** Places that are no padding, [B]. @param paddings [B, T] */
const frames = (paddings: Tensor): Tensor => tf.sum(tf.cast(tf.less(paddings, 0.5), 'float32'), 1);

/** Frames that labels need, [B]: one each, and a blank between equal ones. */
function neededFrames(labels: Tensor, paddings: Tensor): Tensor {
  const [rows, count] = labels.shape as [number, number];
  const [first, second] = [0, 1].map((at) => tf.slice(labels, [0, at], [rows, count - 1]));
  const kept = tf.less(tf.slice(paddings, [0, 1], [rows, count - 1]), 0.5);
  const repeated = tf.logicalAnd(tf.equal(first!, second!), kept);
  return tf.add(frames(paddings), tf.sum(tf.cast(repeated, 'float32'), 1));
}
