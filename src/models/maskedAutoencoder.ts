/** @file MaskedAutoencoder: images from a part of their patches (He et al., 2021, "Masked autoencoders are scalable vision learners"). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { type Config, type Report, sub } from '../hparams/index.js';
import {
  auxLossOf,
  BaseNormalization,
  BasePositionalEmbedding,
  constantInit,
  FeedForward,
  Identity,
  imageToPatch,
  LayerNorm,
  StackedTransformer,
  type Theta,
  TrainablePositionalEmbedding,
  VisionTransformer,
  withAuxLoss,
} from '../layers/index.js';
import { BaseModel, type TensorBatch, type WeightedScalars } from './baseModel.js';
import { meansBy } from './batchMetrics.js';

/** Predicted patches. */
interface PatchPredictions {
  /** [B, N, patchSize² · channels]. */
  readonly patches: Tensor;
  /** float32 [B, N], 1 for patches that the encoder did not see. */
  readonly mask: Tensor;
}

/**
 * The encoder sees a random part of an image's patches; a smaller decoder predicts the others from the encoder's outputs, and from
 * one trained vector in the place of each that is hidden. Trained, `encoder` is that of a classifier (`network`).
 *
 * Batches have `image` (float32 [B, H, W, C]), or another name, and, where some rows are padding, weights (float32 [B]).
 */
export class MaskedAutoencoder extends BaseModel.with({
  encoderTpl: sub(VisionTransformer).describe(
    'The encoder, of patches without class tokens; its outputs are tokens, as of an exit that pools nothing.',
  ),
  maskRatio: z.number().gt(0).lt(1).default(0.75).describe('Share of the patches that are hidden.'),
  normPixLoss: z
    .boolean()
    .default(true)
    .describe('Whether predicted patches have a mean of 0 and a variance of 1 each.'),
  decoderDims: z.int().positive().describe('Depth of the decoder.'),
  decoderPositionEmbTpl: sub(BasePositionalEmbedding, () => TrainablePositionalEmbedding.config())
    .nullable()
    .describe("Position embeddings of the decoder's patches, row by row; null: none."),
  decoderTpl: sub(StackedTransformer).describe("The decoder's layers."),
  decoderLnTpl: sub(BaseNormalization, () => LayerNorm.config())
    .nullable()
    .describe('The norm after its last layer; null: none.'),
  inputField: z.string().min(1).default('image').describe("Name of the batch's images."),
}) {
  declare readonly theta: Theta<'mask_token'>;
  #encoder!: VisionTransformer;
  #embedding!: FeedForward;
  #positions: BasePositionalEmbedding | null = null;
  #decoder!: StackedTransformer;
  #norm: BaseNormalization | null = null;
  #prediction!: FeedForward;

  static override validate({ encoderTpl }: Config<MaskedAutoencoder>, report: Report): void {
    const { entryLayersTpl: entry, exitLayersTpl: exit } = encoderTpl;
    if (entry === null) report('expected layers that make tokens of images', 'encoderTpl.entryLayersTpl');
    else
      for (const field of ['prependClsTokens', 'appendClsTokens'] as const)
        if (entry[field] > 0) report('expected 0', `encoderTpl.entryLayersTpl.${field}`);
    if (exit?.pooled) report('expected false: the decoder reads tokens', 'encoderTpl.exitLayersTpl.pooled');
  }

  protected override setup(): void {
    const { hp } = this;
    const { encoderTpl, decoderDims } = hp;
    const { modelDims } = encoderTpl.transformerLayersTpl;
    const linear = (inputDims: number, outputDims: number) =>
      FeedForward.config({ inputDims, outputDims, activationTpl: Identity.config() });
    this.#encoder = this.createChild('encoder', encoderTpl);
    this.#embedding = this.createChild('decoder_embed', linear(modelDims, decoderDims));
    this.createVariable('mask_token', { shape: [decoderDims], init: constantInit(0) });
    if (hp.decoderPositionEmbTpl)
      this.#positions = this.createChild('decoder_position_emb', hp.decoderPositionEmbTpl, {
        embeddingDims: decoderDims,
      });
    this.#decoder = this.createChild('decoder', hp.decoderTpl, { modelDims: decoderDims });
    if (hp.decoderLnTpl) this.#norm = this.createChild('decoder_ln', hp.decoderLnTpl, { dim: decoderDims });
    const { inputDims } = encoderTpl.entryLayersTpl!;
    this.#prediction = this.createChild('decoder_pred', linear(decoderDims, inputDims));
  }

  /** A random order of the patches of each row: the place of each in it, int32 [B, N]. */
  #shuffled(batch: number, count: number): Tensor {
    const noise = ops.randomUniform(this.nextPrngKey(), [batch, count]);
    const [own, other] = [tf.expandDims(noise, 2), tf.expandDims(noise, 1)];
    const places = tf.range(0, count, 1, 'int32');
    // Of equal numbers the first comes first.
    const isEarlier = tf.less(tf.expandDims(places, 0), tf.expandDims(places, 1));
    const isBefore = tf.logicalOr(tf.less(other, own), tf.logicalAnd(tf.equal(other, own), isEarlier));
    return tf.sum(tf.cast(isBefore, 'int32'), 2);
  }

  /** Rows [B, K, D] of tokens [B, N, D]. @param at int32 [B, K], the row of each */
  #rows(tokens: Tensor, at: Tensor): Tensor {
    const [batch, count, depth] = tokens.shape as [number, number, number];
    const firsts = tf.mul(tf.range(0, batch, 1, 'int32'), tf.scalar(count, 'int32')) as Tensor;
    const rows = tf.add(at, tf.reshape(firsts, [batch, 1])) as Tensor;
    return ops.embeddingLookup(tf.reshape(tokens, [batch * count, depth]), rows);
  }

  override computePredictions(batch: TensorBatch): PatchPredictions {
    const tokens = this.#encoder.tokens(this.tensorOf(batch, this.hp.inputField));
    const [rows, count] = tokens.shape as [number, number, number];
    const kept = Math.max(1, Math.round(count * (1 - this.hp.maskRatio)));
    const place = this.#shuffled(rows, count);
    const isHidden = tf.greaterEqual(place, tf.scalar(kept, 'int32'));
    // The patch at each of the first places: Σ over patches of those whose place it is.
    const wanted = tf.reshape(tf.range(0, kept, 1, 'int32'), [1, kept, 1]);
    const isThere = tf.equal(tf.expandDims(place, 1), wanted);
    const patches = tf.range(0, count, 1, 'int32') as Tensor;
    const at = tf.sum(tf.where(isThere, patches, tf.scalar(0, 'int32')), 2) as Tensor;
    const seen = this.#embedding.fprop(this.#encoder.encode(this.#rows(tokens, at)));
    const last = tf.scalar(kept - 1, 'int32');
    const whole = tf.where(
      tf.expandDims(isHidden, -1),
      this.theta.mask_token,
      this.#rows(seen, tf.minimum(place, last) as Tensor),
    ) as Tensor;
    const placed = this.#positions ? tf.add(whole, this.#positions.fprop(count)) : whole;
    const decoded = this.#decoder.fprop(placed as Tensor);
    return {
      patches: this.#prediction.fprop(this.#norm ? this.#norm.fprop(decoded) : decoded),
      mask: tf.cast(isHidden, 'float32'),
    };
  }

  /** The patches to predict, [B, N, patchSize² · channels]. */
  #targets(images: Tensor): Tensor {
    const patches = imageToPatch(images, this.hp.encoderTpl.entryLayersTpl!.patchSize);
    if (!this.hp.normPixLoss) return patches;
    const centred = tf.sub(patches, tf.mean(patches, -1, true));
    const size = patches.shape.at(-1)!;
    // Of the paper's code: the unbiased variance.
    const variance = tf.div(tf.sum(tf.square(centred), -1, true), Math.max(size - 1, 1));
    return tf.div(centred, tf.sqrt(tf.add(variance, 1e-6)));
  }

  /**
   * Metrics: total_loss, the mean squared error of hidden patches with the losses that layers add; baseline_mse, that of the mean of
   * the image's visible patches in place of each; num_patches. Per example: patches [B, N, patchSize² · channels] and mask [B, N].
   */
  override computeLoss(
    { patches, mask }: PatchPredictions,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const targets = this.#targets(this.tensorOf(batch, this.hp.inputField));
    const rows = this.rowWeights(batch, mask.shape[0]!);
    const weights = tf.mul(mask, tf.expandDims(rows, -1)) as Tensor;
    const mean = meansBy(weights);
    const isVisible = tf.expandDims(tf.sub(1, mask), -1);
    const means = tf.div(tf.sum(tf.mul(targets, isVisible), 1, true), tf.sum(isVisible, 1, true));
    const [loss, weight] = mean(tf.mean(tf.squaredDifference(patches, targets), -1));
    const metrics: WeightedScalars = {
      total_loss: [withAuxLoss(loss, auxLossOf(this)), weight],
      baseline_mse: mean(tf.mean(tf.squaredDifference(targets, means), -1)),
      num_patches: [tf.sum(weights), tf.scalar(1)],
    };
    return [metrics, { patches, mask }];
  }
}
