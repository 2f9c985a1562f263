/** @file ClipModel: images and texts in one space, by contrast within a batch (Radford et al., 2021, "Learning transferable visual models from natural language supervision"). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { sub } from '../hparams/index.js';
import {
  auxLossOf,
  BaseLayer,
  constantInit,
  isWeighed,
  Linear,
  l2Normalized,
  selected,
  type Theta,
  TransformerTextEncoder,
  VisionTransformer,
  withAuxLoss,
} from '../layers/index.js';
import { BaseModel, type ReadIds, type TensorBatch, type WeightedScalars } from './baseModel.js';
import { meansBy } from './batchMetrics.js';
import { contrastOf } from './contrast.js';

/** Layers that map images to one vector each. */
type ImageEncoder = BaseLayer & { fprop(images: Tensor): Tensor };

/** Vectors of unit length, and their similarities. */
interface Similarities {
  /** [B, projectionDims]. */
  readonly imageEmbeddings: Tensor;
  /** [B, projectionDims]. */
  readonly textEmbeddings: Tensor;
  /** [B, B]: cosine of each image and each text, times the scale. */
  readonly logits: Tensor;
}

/** exp(logitScale) at most, as in the paper. */
const MAX_SCALE = 100;

/**
 * An image encoder and a text encoder, whose outputs are projected to vectors of unit length. Of all pairs of a batch, an image
 * and its own text are to be the most similar.
 *
 * Batches have image (float32 [B, H, W, C]), ids (int32 [B, T]) and paddings (float32 [B, T]), the latter two perhaps in `textField`,
 * and, where some rows are padding, weights (float32 [B]), by which they are no candidates either.
 */
export class ClipModel extends BaseModel.with({
  imageTpl: sub(BaseLayer, () => VisionTransformer.config()).describe(
    'The image encoder: `fprop` maps images to [B, imageDims].',
  ),
  imageDims: z.int().positive().describe("Depth of the image encoder's output."),
  textTpl: sub(TransformerTextEncoder).describe('The text encoder.'),
  projectionDims: z.int().positive().describe('Depth of the space of both.'),
  textField: z
    .string()
    .nullable()
    .default(null)
    .describe('Field of a batch with the ids and paddings of texts; null: they are fields of their own.'),
  temperature: z
    .number()
    .positive()
    .default(0.07)
    .describe('Initial temperature, by which cosines are divided; it is trained.'),
}) {
  declare readonly theta: Theta<'logit_scale'>;
  #image!: ImageEncoder;
  #text!: TransformerTextEncoder;
  #imageProjection!: Linear;
  #textProjection!: Linear;

  protected override setup(): void {
    const { imageTpl, imageDims, textTpl, projectionDims: outputDims, temperature } = this.hp;
    this.#image = this.createChild('image_encoder', imageTpl) as ImageEncoder;
    this.#text = this.createChild('text_encoder', textTpl);
    this.#imageProjection = this.createChild(
      'image_projection',
      Linear.config({ inputDims: imageDims, outputDims }),
    );
    this.#textProjection = this.createChild(
      'text_projection',
      Linear.config({ inputDims: textTpl.modelDims, outputDims }),
    );
    this.createVariable('logit_scale', { shape: [], init: constantInit(-Math.log(temperature)) });
  }

  override get readIds(): readonly ReadIds[] {
    return [{ path: `${this.#beforeText}ids`, count: this.hp.textTpl.vocabSize, field: 'textTpl.vocabSize' }];
  }

  /** What stands before the names of a text's arrays. */
  get #beforeText(): string {
    const { textField } = this.hp;
    return textField === null ? '' : `${textField}.`;
  }

  /** The reciprocal of the temperature: exp(logit_scale), at most 100. */
  get #scale(): Tensor {
    return tf.exp(tf.minimum(this.theta.logit_scale, Math.log(MAX_SCALE)));
  }

  override computePredictions(batch: TensorBatch): Similarities {
    const { weights } = batch;
    // The values in rows of padding reach no gradient of others.
    const real = (x: Tensor): Tensor => (weights ? selected(x, tf.expandDims(isWeighed(weights), -1)) : x);
    const images = real(this.#image.fprop(this.tensorOf(batch, 'image')));
    const textOf = (name: string): Tensor => this.tensorOf(batch, this.#beforeText + name);
    const paddings = this.hp.textField === null ? batch.paddings : textOf('paddings');
    const texts = real(this.#text.fprop(textOf('ids'), paddings));
    const imageEmbeddings = l2Normalized(this.#imageProjection.fprop(images), [-1]);
    const textEmbeddings = l2Normalized(this.#textProjection.fprop(texts), [-1]);
    const cosines = tf.matMul(imageEmbeddings, textEmbeddings, false, true);
    return { imageEmbeddings, textEmbeddings, logits: tf.mul(cosines, this.#scale) };
  }

  /**
   * Metrics: total_loss, the mean of the cross entropies of texts for images and of images for texts, with the losses that layers
   * add; contrastive_loss without them; image_to_text_accuracy, text_to_image_accuracy and temperature. Per example: both vectors.
   */
  override computeLoss(
    { imageEmbeddings, textEmbeddings, logits }: Similarities,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const [rows] = logits.shape as [number, number];
    const weights = this.rowWeights(batch, rows);
    const mean = meansBy(weights);
    const [ofImages, ofTexts] = [logits, tf.transpose(logits)].map((scores) => contrastOf(scores, weights));
    const [contrastive, weight] = mean(tf.div(tf.add(ofImages!.losses, ofTexts!.losses), 2) as Tensor);
    const metrics: WeightedScalars = {
      total_loss: [withAuxLoss(contrastive, auxLossOf(this)), weight],
      contrastive_loss: [contrastive, weight],
      image_to_text_accuracy: mean(ofImages!.hits),
      text_to_image_accuracy: mean(ofTexts!.hits),
      temperature: [tf.reciprocal(this.#scale), tf.scalar(1)],
    };
    return [metrics, { image_embeddings: imageEmbeddings, text_embeddings: textEmbeddings }];
  }
}
