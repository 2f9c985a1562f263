/** @file SequenceModel: an encoder-decoder with Pax's losses and metrics (praxis/layers/models.py). */
import { z } from 'zod';
import { type Tensor, type TensorSpec, tf } from '../compiler/index.js';
import type { Decodable } from '../decoding/index.js';
import { sub } from '../hparams/index.js';
import {
  type DecodeStateSpec,
  type LmOutput,
  type StepArgs,
  TransformerEncoderDecoder,
} from '../layers/index.js';
import {
  BaseModel,
  idsBelow,
  type ReadIds,
  type RowSettings,
  type TensorBatch,
  type WeightedScalars,
} from './baseModel.js';
import { labelSmoothingField, smoothed } from './labelSmoothing.js';
import { tokenMetrics } from './tokenMetrics.js';
import { type TokenNetwork, tokenNetwork } from './tokenNetworks.js';

/**
 * A model that maps source sequences to target sequences.
 *
 * Batches have `src` with ids [B, S], or features [B, S, F] for a network with a stem, and paddings [B, S], and `tgt` with ids,
 * paddings, labels and weights, each [B, T], as `SequenceModelFeatures` makes them; both have segmentIds and segmentPos where rows
 * are packed. Decoding reads the source once, and continues the first target token.
 */
export class SequenceModel
  extends BaseModel.with({
    modelTpl: sub(TransformerEncoderDecoder).describe('The network.'),
    returnPredictions: z
      .boolean()
      .default(false)
      .describe('Whether per-example output has the logits and predicted ids too.'),
    labelSmoothingProb: labelSmoothingField('modelTpl'),
  })
  implements Decodable
{
  #network!: TokenNetwork;

  protected override setup(): void {
    const { modelTpl, labelSmoothingProb } = this.hp;
    const softmaxTpl = smoothed(modelTpl.softmaxTpl, labelSmoothingProb);
    this.#network = tokenNetwork(this.createChild('model', modelTpl, { softmaxTpl }));
  }

  override get readIds(): readonly ReadIds[] {
    return idsBelow('modelTpl', this.#network.readIds);
  }

  override get rowSettings(): RowSettings {
    return { field: 'modelTpl', ...this.#network.rowSettings };
  }

  override computePredictions(batch: TensorBatch): LmOutput {
    return this.#network.outputs((name) => this.tensorOf(batch, name));
  }

  /** Metrics: LanguageModel's, of targets. Per example: labels [B, T] and scores [B], the log-probability of each target. */
  override computeLoss(
    predictions: LmOutput,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const tokens = {
      labels: this.tensorOf(batch, 'tgt.labels'),
      weights: this.tensorOf(batch, 'tgt.weights'),
    };
    const { logits, perExampleArgmax, perSequenceXent } = predictions;
    const perExample = { labels: tokens.labels, scores: tf.neg(perSequenceXent) as Tensor };
    return [
      tokenMetrics(predictions, tokens),
      this.hp.returnPredictions ? { ...perExample, logits, predicted_ids: perExampleArgmax } : perExample,
    ];
  }

  get vocabSize(): number {
    return this.#network.vocabSize;
  }

  get nested(): Decodable['nested'] {
    return this.#network.nested;
  }

  get promptNames(): readonly string[] {
    return this.#network.promptNames!;
  }

  initialDecodeState(
    rows: number,
    seqLen: number,
    prompt: Readonly<Record<string, TensorSpec>>,
  ): Record<string, DecodeStateSpec> {
    return this.#network.initialDecodeState(rows, seqLen, prompt);
  }

  begin(prompt: Readonly<Record<string, Tensor>>): void {
    this.#network.begin!(prompt);
  }

  extendStep(ids: Tensor, args: StepArgs): Tensor {
    return this.#network.extendStep(ids, args);
  }
}
