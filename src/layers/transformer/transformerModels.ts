/** @file TransformerLm: embeddings, a stack of transformer layers, a softmax (praxis/layers/transformer_models.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { sub } from '../../hparams/index.js';
import { BasePositionalEmbedding, PositionalEmbedding, stepsFrom } from '../attention/positions.js';
import type { Visibility } from '../attention/visibility.js';
import { BaseLayer } from '../core/base.js';
import { weightedSum } from '../core/masks.js';
import type { StepArgs } from '../core/mixer.js';
import { BaseSoftmax, Embedding, SharedEmbeddingSoftmax, type SoftmaxOutput } from '../embeddingSoftmax.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';
import { StackedTransformer } from './stackedTransformers.js';
import type { Memory } from './transformers.js';

/** Inputs of a language model; tensors without a shape are [B, T]. */
export interface LmInputs {
  /** int32 token ids. */
  readonly ids: Tensor;
  /** float32, 1 for padding. Read where `usePaddings` is set. */
  readonly paddings?: Tensor | undefined;
  /** int32, the sequence that a token of a packed row belongs to. Required for packed input. */
  readonly segmentIds?: Tensor | undefined;
  /** int32, positions within sequences. Required for packed input. */
  readonly segmentPos?: Tensor | undefined;
  /** A sequence that the layers attend to, such as an encoder's output. Required where they have cross-attention. */
  readonly memory?: Memory | undefined;
}

/** Targets of a language model; both tensors are [B, T]. */
export interface LmLabels {
  /** int32 ids to predict. */
  readonly classIds: Tensor;
  /** float32 weight of each prediction. */
  readonly classWeights: Tensor;
}

/** Outputs of a language model; the softmax's have leading dimensions [B, T]. */
export interface LmOutput extends Omit<SoftmaxOutput, 'perExampleWeight'> {
  /** [B]: sum over the sequence of weighted cross entropy. */
  readonly perSequenceXent: Tensor;
  /** Scalar, or null if no layer added a loss. */
  readonly auxLoss: Tensor | null;
  /** Scalar: avgXent plus auxLoss, the training loss. */
  readonly totalLoss: Tensor;
}

/**
 * A decoder-only (or, if bidirectional, encoder-only) transformer over tokens.
 *
 * Subclasses may override: `embed` (input of the stack), `visibility` (of tokens to each other), `normalize`,
 * `auxLoss`.
 */
export class TransformerLm extends BaseLayer.with({
  vocabSize: z.int().positive().describe('Size of the vocabulary.'),
  modelDims: z.int().positive().describe('Depth of the model.'),
  modelType: z
    .enum(['causal', 'bidirectional'])
    .default('causal')
    .describe('Whether a token sees those before it only, or all.'),
  packedInput: z
    .boolean()
    .default(false)
    .describe('Whether a row holds several sequences, told apart by segment ids.'),
  usePaddings: z
    .boolean()
    .default(false)
    .describe(
      'Whether paddings are hidden from attention. Causal models whose padding stands on the right need it not: ' +
        'nothing that has a weight can see it.',
    ),
  positionEmbTpl: sub(BasePositionalEmbedding, () => PositionalEmbedding.config())
    .nullable()
    .describe('Position embeddings that are added to token embeddings; null: none.'),
  stackedTransformerTpl: sub(StackedTransformer).describe('The stack of layers.'),
  separateEmbeddingTpl: sub(Embedding)
    .nullable()
    .default(null)
    .describe("The token embedding; null: the softmax's weights."),
  softmaxTpl: sub(BaseSoftmax, () => SharedEmbeddingSoftmax.config()).describe(
    'The softmax over the vocabulary.',
  ),
  finalLnTpl: sub(BaseNormalization, () => LayerNorm.config())
    .nullable()
    .describe('The norm after the last layer; null: none.'),
}) {
  protected positions: BasePositionalEmbedding | null = null;
  protected embedding!: { embLookup(ids: Tensor): Tensor };
  protected transformer!: StackedTransformer;
  protected finalNorm: BaseNormalization | null = null;
  protected softmax!: BaseSoftmax;

  protected override setup(): void {
    const { hp } = this;
    const { modelDims, vocabSize } = hp;
    const dims = { inputDims: modelDims, numClasses: vocabSize };
    if (hp.positionEmbTpl)
      this.positions = this.createChild('position_emb', hp.positionEmbTpl, { embeddingDims: modelDims });
    const separate =
      hp.separateEmbeddingTpl && this.createChild('embedding_lookup', hp.separateEmbeddingTpl, dims);
    this.transformer = this.createChild('transformer', hp.stackedTransformerTpl, { modelDims });
    if (hp.finalLnTpl) this.finalNorm = this.createChild('final_ln', hp.finalLnTpl, { dim: modelDims });
    this.softmax = this.createChild('softmax', hp.softmaxTpl, dims);
    this.embedding = separate ?? this.#sharedEmbedding();
  }

  #sharedEmbedding(): { embLookup(ids: Tensor): Tensor } {
    const softmax: BaseSoftmax & { embLookup?: (ids: Tensor) => Tensor } = this.softmax;
    if (!softmax.embLookup) {
      throw this.error(
        `softmaxTpl is a ${softmax.constructor.name}, which can't embed tokens; set separateEmbeddingTpl, or use ` +
          'SharedEmbeddingSoftmax or NClassMajorSharedEmbeddingSoftmax.',
      );
    }
    return { embLookup: (ids) => softmax.embLookup!(ids) };
  }

  /** Activations [B, T, modelDims] after the final norm. */
  activations(inputs: LmInputs): Tensor {
    const seen = this.visibility(inputs);
    const paddings = this.hp.usePaddings ? inputs.paddings : undefined;
    // A packed document may be as long as its row.
    this.positions?.checkLength(inputs.ids.shape[1]!);
    const x = this.embed(inputs.ids, seen.positions?.queries);
    return this.normalize(this.transformer.fprop(x, { seen, paddings, memory: inputs.memory }));
  }

  /**
   * Input of the stack: token plus position embeddings, [B, T, modelDims].
   *
   * @param ids int32 [B, T].
   * @param position int32 [B, T] or [1, T]; default 0 to T - 1.
   */
  protected embed(ids: Tensor, position?: Tensor): Tensor {
    const x = this.embedding.embLookup(ids);
    if (!this.positions) return x;
    return tf.add(x, position ? this.positions.atPositions(position) : this.positions.fprop(ids.shape[1]!));
  }

  /** The final norm, if any: [B, T, modelDims] to the same shape. */
  protected normalize(x: Tensor): Tensor {
    return this.finalNorm ? this.finalNorm.fprop(x) : x;
  }

  /** Logits [B, T, vocabSize] of the next tokens. */
  logits(inputs: LmInputs): Tensor {
    return this.softmax.getLogits(this.activations(inputs));
  }

  /** Predictions and losses of a batch. */
  fprop(inputs: LmInputs, { classIds, classWeights }: LmLabels): LmOutput {
    const output = this.softmax.fprop(this.activations(inputs), classWeights, classIds);
    const auxLoss = this.auxLoss();
    return {
      ...output,
      perSequenceXent: weightedSum(output.perExampleXent, classWeights, -1),
      auxLoss,
      totalLoss: auxLoss ? tf.add(output.avgXent, auxLoss) : output.avgXent,
    };
  }

  /** Begins a decode that attends to a memory's states [B, M, modelDims]. */
  begin(states: Tensor): void {
    this.transformer.begin(states);
  }

  /**
   * Logits of the token after each of `ids`, given earlier tokens, which are in the decode state.
   *
   * @param ids int32 [B]: the tokens at `timeStep`; or [B, T]: those from `timeStep` on.
   * @returns [B, vocabSize], or [B, T, vocabSize].
   */
  extendStep(ids: Tensor, args: StepArgs): Tensor {
    if (this.hp.modelType !== 'causal') throw this.error('only a causal model decodes step by step.');
    const [batch, steps = 1] = ids.shape as [number, number?];
    const x = this.embed(tf.reshape(ids, [batch, steps]), stepsFrom(args.timeStep, steps));
    const logits = this.softmax.getLogits(this.normalize(this.transformer.extendStep(x, args)));
    return tf.reshape(logits, [...ids.shape, this.hp.vocabSize]);
  }

  /** Visibility of a batch's tokens. @throws LayerError if the batch lacks tensors for packedInput or usePaddings. */
  protected visibility({ paddings, segmentIds, segmentPos }: LmInputs): Visibility {
    const { packedInput, usePaddings, modelType } = this.hp;
    if (packedInput && !(segmentIds && segmentPos))
      throw this.error('packedInput is set, and the batch lacks segmentIds or segmentPos.');
    if (usePaddings && !paddings) throw this.error('usePaddings is set, and the batch lacks paddings.');
    const ofBoth = (x: Tensor) => ({ queries: x, keys: x });
    return {
      causal: modelType === 'causal',
      ...(packedInput && { segments: ofBoth(segmentIds!), positions: ofBoth(segmentPos!) }),
      ...(usePaddings && { paddings }),
    };
  }

  /** Weighted sum of the losses that layers added, a scalar; null if none did. */
  protected auxLoss(): Tensor | null {
    const losses = this.context.auxLosses.map(({ value, weight }) =>
      weight === 1 ? value : tf.mul(value, weight),
    );
    return losses.length === 0 ? null : losses.reduce((a, b) => tf.add(a, b));
  }
}
