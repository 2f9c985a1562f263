/** @file LanguageModel: next-token prediction with Pax's metrics (praxis/layers/models.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import type { Decodable } from '../decoding/index.js';
import { type Config, type Report, sub } from '../hparams/index.js';
import {
  type DecodeStateSpec,
  isWeighed,
  type LmOutput,
  type StepArgs,
  TokenCounter,
  TransformerLm,
} from '../layers/index.js';
import {
  BaseModel,
  idsBelow,
  type ReadIds,
  type RowSettings,
  type TensorBatch,
  type WeightedScalars,
} from './baseModel.js';
import { strictAccuracy, tokenMetrics, yesNoAccuracy } from './tokenMetrics.js';
import { type TokenNetwork, tokenNetwork } from './tokenNetworks.js';

const tokenId = z.int().nonnegative();

/**
 * A language model.
 *
 * Batches have ids, labels (int32 [B, T]), weights and paddings (float32 [B, T]), and, where the input is packed,
 * segmentIds and segmentPos (int32 [B, T]); for a prefix model also inputsIndicator (float32 [B, T]), 1 for the leading tokens that
 * all see; evalSampleWeights (float32 [B]) where examples are weighed.
 */
export class LanguageModel
  extends BaseModel.with({
    lmTpl: sub(TransformerLm).describe('The network.'),
    returnPredictions: z
      .boolean()
      .default(false)
      .describe('Whether per-example output has the logits and predicted ids too.'),
    countTokens: z
      .boolean()
      .default(false)
      .describe('Whether a variable, which checkpoints keep, counts the tokens of training in millions.'),
    applyEvalSampleWeights: z
      .boolean()
      .default(false)
      .describe("Whether weights of tokens are multiplied by the batch's evalSampleWeights [B]."),
    reportStrictAcc: z
      .boolean()
      .default(false)
      .describe(
        'Whether there is a metric acc_strict: the share of examples of which every weighed token is predicted, as LAMBADA is scored.',
      ),
    boolqYnTokens: z
      .tuple([tokenId, tokenId])
      .nullable()
      .default(null)
      .describe(
        'Ids of yes and no, for a metric boolq_acc: the share of examples whose answer is likelier than the other one; null: none.',
      ),
  })
  implements Decodable
{
  #network!: TokenNetwork;
  #tokenCounter: TokenCounter | null = null;

  static override validate({ lmTpl, boolqYnTokens }: Config<LanguageModel>, report: Report): void {
    if (boolqYnTokens?.some((id) => id >= lmTpl.vocabSize))
      report(`expected ids below lmTpl.vocabSize (${lmTpl.vocabSize})`, 'boolqYnTokens');
  }

  protected override setup(): void {
    if (this.hp.countTokens) this.#tokenCounter = this.createChild('token_counter', TokenCounter.config());
    this.#network = tokenNetwork(this.createChild('lm', this.hp.lmTpl));
  }

  override get readIds(): readonly ReadIds[] {
    return idsBelow('lmTpl', this.#network.readIds);
  }

  override get labelIds(): readonly ReadIds[] {
    return idsBelow('lmTpl', this.#network.labelIds);
  }

  override get rowSettings(): RowSettings {
    return { field: 'lmTpl', ...this.#network.rowSettings };
  }

  override computePredictions(batch: TensorBatch): LmOutput {
    if (this.#tokenCounter) this.#tokenCounter.fprop(this.tensorOf(batch, 'paddings'));
    return this.#network.outputs((name) =>
      name === 'weights' ? this.#weightsOf(batch) : this.tensorOf(batch, name),
    );
  }

  /** Weights of tokens, [B, T]. */
  #weightsOf(batch: TensorBatch): Tensor {
    const weights = this.tensorOf(batch, 'weights');
    if (!this.hp.applyEvalSampleWeights) return weights;
    return tf.mul(weights, tf.expandDims(this.tensorOf(batch, 'evalSampleWeights'), -1));
  }

  /**
   * Metrics: total_loss, avg_xent, aux_loss, log_pplx (nats a token), fraction_of_correct_next_step_preds and
   * num_predictions; acc_strict and boolq_acc where they are asked for, whose examples count by evalSampleWeights, or, in a
   * batch without, where any token has a weight. Per example: labels [B, T] and scores [B], the log-probability of each sequence.
   */
  override computeLoss(
    predictions: LmOutput,
    batch: TensorBatch,
  ): [WeightedScalars, Readonly<Record<string, Tensor>>] {
    const { reportStrictAcc, boolqYnTokens, returnPredictions } = this.hp;
    const labels = this.tensorOf(batch, 'labels');
    const tokens = { labels, weights: this.#weightsOf(batch) };
    const examples = (): Tensor =>
      batch.evalSampleWeights ?? tf.cast(tf.any(isWeighed(tokens.weights), -1), 'float32');
    const metrics: WeightedScalars = {
      ...tokenMetrics(predictions, tokens),
      ...(reportStrictAcc && { acc_strict: strictAccuracy(predictions, tokens, examples()) }),
      ...(boolqYnTokens && { boolq_acc: yesNoAccuracy(predictions, tokens, boolqYnTokens, examples()) }),
    };
    const perExample = { labels, scores: tf.neg(predictions.perSequenceXent) as Tensor };
    if (!returnPredictions) return [metrics, perExample];
    const { logits, perExampleArgmax } = predictions;
    return [metrics, { ...perExample, logits, predicted_ids: perExampleArgmax }];
  }

  get vocabSize(): number {
    return this.#network.vocabSize;
  }

  get seesWholePrompt(): boolean {
    return this.#network.seesWholePrompt!;
  }

  initialDecodeState(batchSize: number, seqLen: number): Record<string, DecodeStateSpec> {
    return this.#network.initialDecodeState(batchSize, seqLen);
  }

  extendStep(ids: Tensor, args: StepArgs): Tensor {
    return this.#network.extendStep(ids, args);
  }
}
