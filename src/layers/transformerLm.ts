/** @file A transformer language model: embeddings, a stack of transformer layers, a softmax over the vocabulary. */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { derive, sub } from '../hparams/index.js';
import type { AttentionArgs } from './attentions.js';
import { BaseLayer } from './baseLayer.js';
import { Embedding } from './embeddings.js';
import { paddingMask, segmentMask } from './masks.js';
import { BaseNormalization, LayerNorm } from './normalizations.js';
import { BasePositionalEmbedding, PositionalEmbedding, stepsFrom } from './positions.js';
import { BaseSoftmax, SharedEmbeddingSoftmax, type SoftmaxOutput } from './softmax.js';
import { StackedTransformer } from './transformers.js';

/** Inputs of a language model; all tensors are [B, T]. */
export interface LmInputs {
  /** int32 token ids. */
  readonly ids: Tensor;
  /** float32, 1 for padding. Read where `usePaddings` is set. */
  readonly paddings?: Tensor | undefined;
  /** int32, the sequence that a token of a packed row belongs to. Required for packed input. */
  readonly segmentIds?: Tensor | undefined;
  /** int32, positions within sequences. Required for packed input. */
  readonly segmentPos?: Tensor | undefined;
}

/** Targets of a language model; both tensors are [B, T]. */
export interface LmLabels {
  /** int32 ids to predict. */
  readonly classIds: Tensor;
  /** float32 weight of each prediction. */
  readonly classWeights: Tensor;
}

/** What a language model says about a batch. */
export interface LmOutput
  extends Omit<SoftmaxOutput, 'perExampleArgmax' | 'perExampleXent' | 'perExampleWeight'> {
  /** [B, T, V]. */
  readonly logits: Tensor;
  /** int32 [B, T]: the likeliest next token. */
  readonly perExampleArgmax: Tensor;
  /** [B, T]: cross entropy in nats, without weights. */
  readonly perExampleXent: Tensor;
  /** [B]: sum over the sequence of weighted cross entropy. */
  readonly perSequenceXent: Tensor;
  /** Scalar, or null where no layer added a loss. */
  readonly auxLoss: Tensor | null;
  /** Scalar: avgXent plus auxLoss; what training minimises. */
  readonly totalLoss: Tensor;
}

/** A decoder-only (or, if bidirectional, encoder-only) transformer over tokens. */
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
  #positions: BasePositionalEmbedding | null = null;
  #embedding!: { embLookup(ids: Tensor): Tensor };
  #transformer!: StackedTransformer;
  #finalNorm: BaseNormalization | null = null;
  #softmax!: BaseSoftmax;

  protected override setup(): void {
    const { hp } = this;
    const { modelDims, vocabSize } = hp;
    if (hp.positionEmbTpl) {
      const tpl = derive(hp.positionEmbTpl, (p) => {
        p.embeddingDims = modelDims;
      });
      this.#positions = this.createChild('position_emb', tpl);
    }
    const separate = hp.separateEmbeddingTpl && this.#createEmbedding(hp.separateEmbeddingTpl);
    this.#transformer = this.createChild(
      'transformer',
      derive(hp.stackedTransformerTpl, (p) => {
        p.modelDims = modelDims;
      }),
    );
    if (hp.finalLnTpl) {
      const tpl = derive(hp.finalLnTpl, (p) => {
        p.dim = modelDims;
      });
      this.#finalNorm = this.createChild('final_ln', tpl);
    }
    this.#softmax = this.createChild(
      'softmax',
      derive(hp.softmaxTpl, (p) => {
        p.inputDims = modelDims;
        p.numClasses = vocabSize;
      }),
    );
    this.#embedding = separate ?? this.#sharedEmbedding();
  }

  #createEmbedding(tpl: NonNullable<typeof this.hp.separateEmbeddingTpl>): Embedding {
    return this.createChild(
      'embedding_lookup',
      derive(tpl, (p) => {
        p.inputDims = this.hp.modelDims;
        p.numClasses = this.hp.vocabSize;
      }),
    );
  }

  #sharedEmbedding(): { embLookup(ids: Tensor): Tensor } {
    const softmax: BaseSoftmax & { embLookup?: (ids: Tensor) => Tensor } = this.#softmax;
    if (!softmax.embLookup) {
      throw this.error(
        `softmaxTpl is a ${softmax.constructor.name}, which can't embed tokens; set separateEmbeddingTpl, or use ` +
          'SharedEmbeddingSoftmax or NClassMajorSharedEmbeddingSoftmax.',
      );
    }
    return { embLookup: (ids) => softmax.embLookup!(ids) };
  }

  /** The weights' view of a batch: activations [B T, modelDims] after the final norm. */
  activations(inputs: LmInputs): Tensor {
    const { ids } = inputs;
    const [batch, time] = ids.shape as [number, number];
    const { segmentPos } = this.#segments(inputs);
    let x = this.#embedding.embLookup(ids);
    if (this.#positions) {
      x = tf.add(x, segmentPos ? this.#positions.atPositions(segmentPos) : this.#positions.fprop(time));
    }
    // Flat from here on: every product by a weight is one matrix product, and only attention needs B and T.
    const flat = tf.reshape(x, [batch * time, this.hp.modelDims]);
    const paddings = this.hp.usePaddings ? inputs.paddings : undefined;
    const flatPaddings = paddings && tf.reshape(paddings, [batch * time]);
    const outputs = this.#transformer.fprop(flat, this.#attentionArgs(inputs, [batch, time]), flatPaddings);
    return this.#finalNorm ? this.#finalNorm.fprop(outputs) : outputs;
  }

  /** Logits [B, T, vocabSize] of the token after each. */
  logits(inputs: LmInputs): Tensor {
    const logits = this.#softmax.getLogits(this.activations(inputs));
    return tf.reshape(logits, [...inputs.ids.shape, this.hp.vocabSize]);
  }

  /** Predictions and losses of a batch. */
  fprop(inputs: LmInputs, labels: LmLabels): LmOutput {
    const shape = inputs.ids.shape as [number, number];
    const count = shape[0] * shape[1];
    const weights = tf.reshape(labels.classWeights, [count]);
    const output = this.#softmax.fprop(
      this.activations(inputs),
      weights,
      tf.reshape(labels.classIds, [count]),
    );
    const perExampleXent = tf.reshape(output.perExampleXent, shape);
    const auxLoss = this.#auxLoss();
    return {
      logits: tf.reshape(output.logits, [...shape, this.hp.vocabSize]),
      perExampleArgmax: tf.reshape(output.perExampleArgmax, shape),
      perExampleXent,
      perSequenceXent: tf.sum(tf.mul(perExampleXent, labels.classWeights), -1),
      totalXent: output.totalXent,
      totalWeight: output.totalWeight,
      avgXent: output.avgXent,
      auxLoss,
      totalLoss: auxLoss ? tf.add(output.avgXent, auxLoss) : output.avgXent,
    };
  }

  /**
   * Logits of the token after `ids`, given the tokens before it, which the decode state holds.
   *
   * @param ids int32 [B]: the tokens at `timeStep`.
   * @param timeStep int32 scalar, from 0; all rows are at the same step.
   * @returns [B, vocabSize].
   */
  extendStep(ids: Tensor, timeStep: Tensor): Tensor {
    let outputs = this.#transformer.extendStep(this.#embedAt(ids, timeStep), timeStep);
    if (this.#finalNorm) outputs = this.#finalNorm.fprop(outputs);
    return this.#softmax.getLogits(outputs);
  }

  /**
   * Takes several tokens of each sequence into the decode state at once, as extendStep does one after another.
   *
   * @param ids int32 [B, T]: the tokens at `timeStep` and after it.
   * @param timeStep int32 scalar.
   */
  prefill(ids: Tensor, timeStep: Tensor): void {
    const [batch, steps] = ids.shape as [number, number];
    const x = tf.reshape(this.#embedAt(ids, timeStep), [batch * steps, this.hp.modelDims]);
    this.#transformer.prefill(x, timeStep, steps);
  }

  /** Tokens [B] at `timeStep`, or [B, T] from there on, to [..., modelDims]. */
  #embedAt(ids: Tensor, timeStep: Tensor): Tensor {
    if (this.hp.modelType !== 'causal') throw this.error('only a causal model decodes step by step.');
    const x = this.#embedding.embLookup(ids);
    if (!this.#positions) return x;
    return tf.add(x, this.#positions.atPositions(stepsFrom(timeStep, ids.shape[1] ?? 1)));
  }

  #segments({ segmentIds, segmentPos }: LmInputs): { segmentIds?: Tensor; segmentPos?: Tensor } {
    if (!this.hp.packedInput) return {};
    if (!segmentIds || !segmentPos) {
      throw this.error('packedInput is set, and the batch lacks segmentIds or segmentPos.');
    }
    return { segmentIds, segmentPos };
  }

  #attentionArgs(inputs: LmInputs, batchTime: readonly [number, number]): AttentionArgs {
    const { segmentIds, segmentPos } = this.#segments(inputs);
    const masks = [];
    if (segmentIds) masks.push(segmentMask(segmentIds));
    if (this.hp.usePaddings) {
      if (!inputs.paddings) throw this.error('usePaddings is set, and the batch lacks paddings.');
      masks.push(paddingMask(inputs.paddings));
    }
    return {
      batchTime,
      causal: this.hp.modelType === 'causal',
      attenMask: masks.length === 0 ? undefined : masks.reduce((a, b) => tf.add(a, b)),
      segmentPos,
    };
  }

  #auxLoss(): Tensor | null {
    const losses = this.context.auxLosses.map(({ value, weight }) =>
      weight === 1 ? value : tf.mul(value, weight),
    );
    return losses.length === 0 ? null : losses.reduce((a, b) => tf.add(a, b));
  }
}
