/** @file SequenceModel: an encoder-decoder with Pax's losses and metrics (praxis/layers/models.py). */
import { z } from 'zod';
import { type Tensor, type TensorSpec, tf } from '../compiler/index.js';
import type { Decodable } from '../decoding/index.js';
import { sub } from '../hparams/index.js';
import {
  type DecodeStateSpec,
  decodeStateSpecs,
  type LmOutput,
  type SequenceInputs,
  type StepArgs,
  TransformerEncoderDecoder,
} from '../layers/index.js';
import {
  BaseModel,
  type ReadIds,
  type RowSettings,
  type TensorBatch,
  type WeightedScalars,
} from './baseModel.js';
import { labelSmoothingField, smoothed } from './labelSmoothing.js';
import { tokenMetrics } from './tokenMetrics.js';

/**
 * A model that maps source sequences to target sequences.
 *
 * Batches have `src` with ids and paddings, and `tgt` with ids, paddings, labels and weights, each [B, S] or [B, T], as
 * `SequenceModelFeatures` makes them; both have segmentIds and segmentPos where rows are packed. Decoding reads the source once,
 * and continues the first target token.
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
  #model!: TransformerEncoderDecoder;
  readonly nested = { source: 'src', target: 'tgt' };
  readonly promptNames = ['src.ids', 'src.paddings'];

  protected override setup(): void {
    const { modelTpl, labelSmoothingProb } = this.hp;
    const softmaxTpl = smoothed(modelTpl.softmaxTpl, labelSmoothingProb);
    this.#model = this.createChild('model', modelTpl, { softmaxTpl });
  }

  override get readIds(): readonly ReadIds[] {
    const { encoderEmbeddingTpl, decoderEmbeddingTpl } = this.hp.modelTpl;
    const [decoder, decoderField] = decoderEmbeddingTpl
      ? [decoderEmbeddingTpl.numClasses, 'decoderEmbeddingTpl']
      : [this.vocabSize, 'softmaxTpl'];
    const [encoder, encoderField] = encoderEmbeddingTpl
      ? [encoderEmbeddingTpl.numClasses, 'encoderEmbeddingTpl']
      : [decoder, decoderField];
    return [
      { path: 'src.ids', count: encoder, field: `modelTpl.${encoderField}.numClasses` },
      { path: 'tgt.ids', count: decoder, field: `modelTpl.${decoderField}.numClasses` },
      { path: 'tgt.labels', count: this.vocabSize, field: 'modelTpl.softmaxTpl.numClasses' },
    ];
  }

  override get rowSettings(): RowSettings {
    return { field: 'modelTpl', packedInput: this.hp.modelTpl.packedInput };
  }

  #sequence(batch: TensorBatch, half: 'src' | 'tgt'): SequenceInputs {
    const names = ['paddings', ...(this.hp.modelTpl.packedInput ? ['segmentIds', 'segmentPos'] : [])];
    const arrays = names.map((name) => [name, this.tensorOf(batch, `${half}.${name}`)] as const);
    return { ids: this.tensorOf(batch, `${half}.ids`), ...Object.fromEntries(arrays) };
  }

  #labels(batch: TensorBatch): { readonly labels: Tensor; readonly weights: Tensor } {
    return { labels: this.tensorOf(batch, 'tgt.labels'), weights: this.tensorOf(batch, 'tgt.weights') };
  }

  override computePredictions(batch: TensorBatch): LmOutput {
    const { labels, weights } = this.#labels(batch);
    return this.#model.fprop(this.#sequence(batch, 'src'), this.#sequence(batch, 'tgt'), {
      classIds: labels,
      classWeights: weights,
    });
  }

  /** Metrics: LanguageModel's, of targets. Per example: labels [B, T] and scores [B], the log-probability of each target. */
  override computeLoss(
    predictions: LmOutput,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const tokens = this.#labels(batch);
    const { logits, perExampleArgmax, perSequenceXent } = predictions;
    const perExample = { labels: tokens.labels, scores: tf.neg(perSequenceXent) as Tensor };
    return [
      tokenMetrics(predictions, tokens),
      this.hp.returnPredictions ? { ...perExample, logits, predicted_ids: perExampleArgmax } : perExample,
    ];
  }

  get vocabSize(): number {
    return this.hp.modelTpl.softmaxTpl.numClasses;
  }

  /** State of its own: the paddings of sources, which all steps read. */
  override decodeStateSpecs(
    rows: number,
    _seqLen: number,
    sourceLen: number,
  ): Record<string, DecodeStateSpec> {
    return { source_paddings: { shape: [rows, sourceLen], dtype: 'float32' } };
  }

  initialDecodeState(
    rows: number,
    seqLen: number,
    prompt: Readonly<Record<string, TensorSpec>>,
  ): Record<string, DecodeStateSpec> {
    return decodeStateSpecs(this, rows, seqLen, prompt['src.ids']!.shape[1]!);
  }

  begin(prompt: Readonly<Record<string, Tensor>>): void {
    const source = { ids: prompt['src.ids']!, paddings: prompt['src.paddings']! };
    this.updateDecodeState('source_paddings', source.paddings);
    this.#model.begin(this.#model.encode(source));
  }

  extendStep(ids: Tensor, args: StepArgs): Tensor {
    const memorySeen = { paddings: this.getDecodeState('source_paddings') };
    return this.#model.extendStep(ids, { ...args, memorySeen });
  }
}
