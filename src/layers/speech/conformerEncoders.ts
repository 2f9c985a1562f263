/** @file ConformerEncoder: from spectra to frames of features, by stacking, a projection and conformer blocks. */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type ConfigValues, deepCopy, sub } from '../../hparams/index.js';
import { Identity } from '../activations.js';
import { BasePositionalEmbedding, PositionalEmbedding } from '../attention/positions.js';
import { BaseLayer } from '../core/base.js';
import { FeedForward } from '../linears.js';
import { StackingOverTime } from '../stackingOverTime.js';
import { Conformer } from './conformers.js';
import { SpectrumAugmenter } from './spectrumAugmenter.js';

/** Frames of features. */
export interface EncodedFrames {
  /** [B, T', modelDims]. */
  readonly features: Tensor;
  /** [B, T'], 1 for padding. */
  readonly paddings: Tensor;
}

/** Spectra, augmented in training, stacked and projected, in a stack of conformers (Gulati et al., 2020, section 2). */
export class ConformerEncoder extends BaseLayer.with({
  inputDims: z.int().positive().describe('Depth of a frame of the input.'),
  modelDims: z.int().positive().describe('Depth of the blocks, and of the output.'),
  numLayers: z.int().positive().describe('Conformer blocks.'),
  augmenterTpl: sub(SpectrumAugmenter, null)
    .nullable()
    .default(null)
    .describe('Bands of time and frequency that training hides; null: none.'),
  stackingTpl: sub(StackingOverTime, null)
    .nullable()
    .default(null)
    .describe('Frames that become one, by its stride; null: each for itself.'),
  positionEmbTpl: sub(BasePositionalEmbedding, () => PositionalEmbedding.config())
    .nullable()
    .describe('Position embeddings that are added to projected frames; null: none.'),
  conformerTpl: sub(Conformer).describe('Each block; its depth is modelDims.'),
}) {
  #augmenter: SpectrumAugmenter | null = null;
  #stacking: StackingOverTime | null = null;
  #projection!: FeedForward;
  #positions: BasePositionalEmbedding | null = null;
  #blocks!: readonly Conformer[];

  protected override setup(): void {
    const { inputDims, modelDims, numLayers, augmenterTpl, stackingTpl, positionEmbTpl, conformerTpl } =
      this.hp;
    if (augmenterTpl) this.#augmenter = this.createChild('augmenter', augmenterTpl);
    if (stackingTpl) this.#stacking = this.createChild('stacking', stackingTpl);
    this.#projection = this.createChild(
      'projection',
      FeedForward.config({
        inputDims: inputDims * (this.#stacking?.windowSize ?? 1),
        outputDims: modelDims,
        activationTpl: Identity.config(),
      }),
    );
    if (positionEmbTpl)
      this.#positions = this.createChild('position_emb', positionEmbTpl, { embeddingDims: modelDims });
    this.#blocks = Array.from({ length: numLayers }, (_, i) =>
      this.createChild(`conformer_${i}`, deepCopy(conformerTpl), { modelDims } as Partial<
        ConfigValues<Conformer>
      >),
    );
  }

  /** Frames [B, T, inputDims], with paddings [B, T], 1 for padding, to frames of features, one for each stride. */
  fprop(inputs: Tensor, paddings: Tensor = tf.zeros(inputs.shape.slice(0, 2))): EncodedFrames {
    const spectra = this.#augmenter ? this.#augmenter.fprop(inputs, paddings) : inputs;
    const { outputs, paddings: kept } = this.#stacking?.fprop(spectra, paddings) ?? {
      outputs: spectra,
      paddings,
    };
    const projected = this.#projection.fprop(outputs);
    const placed = this.#positions
      ? tf.add(projected, this.#positions.fprop(projected.shape[1]!))
      : projected;
    const features = this.#blocks.reduce((x, block) => block.fprop(x, kept), placed as Tensor);
    return { features, paddings: kept };
  }
}
