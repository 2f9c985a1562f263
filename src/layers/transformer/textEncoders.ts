/** @file TransformerTextEncoder: a stack over tokens, pooled to one vector a row (the text towers of classifiers and of CLIP). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { sub } from '../../hparams/index.js';
import { BasePositionalEmbedding, TrainablePositionalEmbedding } from '../attention/positions.js';
import { BaseLayer } from '../core/base.js';
import { selected, unpadded } from '../core/masks.js';
import { Embedding } from '../embeddings.js';
import { FeedForward } from '../linears.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';
import { StackedTransformer } from './stackedTransformers.js';
import { TokenTypeEmbedding } from './tokenTypes.js';

/** Embeds tokens, mixes them, and gives one vector a row: that of a token, or the mean over all. */
export class TransformerTextEncoder extends BaseLayer.with({
  vocabSize: z.int().positive().describe('Size of the vocabulary.'),
  modelDims: z.int().positive().describe('Depth of the model, and of the output.'),
  causal: z.boolean().default(false).describe('Whether a token sees those before it only, as in CLIP.'),
  pooling: z
    .enum(['mean', 'first', 'last', 'endOfText'])
    .default('mean')
    .describe(
      'The output: the mean over tokens that are no padding, the first or last of them, or the first that is endOfTextId.',
    ),
  endOfTextId: z
    .int()
    .nonnegative()
    .nullable()
    .default(null)
    .describe("The token that pooling 'endOfText' takes; null: that with the largest id of its row."),
  embeddingTpl: sub(Embedding).describe('The token embedding.'),
  positionEmbTpl: sub(BasePositionalEmbedding, () => TrainablePositionalEmbedding.config())
    .nullable()
    .describe('Position embeddings that are added to token embeddings; null: none.'),
  tokenTypeEmbTpl: sub(TokenTypeEmbedding, null)
    .nullable()
    .default(null)
    .describe("Types of tokens, and the norm of the stack's input, as in BERT; null: neither."),
  stackedTransformerTpl: sub(StackedTransformer).describe('The stack of layers.'),
  finalLnTpl: sub(BaseNormalization, () => LayerNorm.config())
    .nullable()
    .describe('The norm after the last layer; null: none.'),
  poolerTpl: sub(FeedForward, null)
    .nullable()
    .default(null)
    .describe("A map of the output, such as BERT's for classifiers; null: none."),
}) {
  #embedding!: Embedding;
  #positions: BasePositionalEmbedding | null = null;
  #transformer!: StackedTransformer;
  #tokenTypes: TokenTypeEmbedding | null = null;
  #norm: BaseNormalization | null = null;
  #pooler: FeedForward | null = null;

  protected override setup(): void {
    const { vocabSize, modelDims, embeddingTpl, stackedTransformerTpl, ...hp } = this.hp;
    const { positionEmbTpl, tokenTypeEmbTpl, finalLnTpl, poolerTpl } = hp;
    const dims = { numClasses: vocabSize, inputDims: modelDims };
    this.#embedding = this.createChild('embedding_lookup', embeddingTpl, dims);
    if (positionEmbTpl)
      this.#positions = this.createChild('position_emb', positionEmbTpl, { embeddingDims: modelDims });
    if (tokenTypeEmbTpl)
      this.#tokenTypes = this.createChild('token_type_emb', tokenTypeEmbTpl, { embeddingDims: modelDims });
    this.#transformer = this.createChild('transformer', stackedTransformerTpl, { modelDims });
    if (finalLnTpl) this.#norm = this.createChild('final_ln', finalLnTpl, { dim: modelDims });
    if (poolerTpl)
      this.#pooler = this.createChild('pooler', poolerTpl, { inputDims: modelDims, outputDims: modelDims });
  }

  /**
   * int32 ids [B, T] to [B, modelDims]; without a pooler, a row of padding alone has zeros, as has one without its end of text.
   *
   * @param paddings [B, T], 1 for padding, which no token sees.
   * @param tokenTypes int32 [B, T]; 0 where absent.
   */
  fprop(ids: Tensor, paddings: Tensor = tf.zeros(ids.shape), tokenTypes?: Tensor): Tensor {
    const { causal } = this.hp;
    const kept = unpadded(this, paddings, ids.shape);
    const tokens = this.#embedding.embLookup(ids);
    const placed = this.#positions ? tf.add(tokens, this.#positions.fprop(ids.shape[1]!)) : tokens;
    const x = this.#tokenTypes ? this.#tokenTypes.fprop(placed as Tensor, tokenTypes) : placed;
    const states = this.#transformer.fprop(x as Tensor, { seen: { causal, paddings }, paddings });
    const pooled = this.#pooled(this.#norm ? this.#norm.fprop(states) : states, ids, kept);
    return this.#pooler ? this.#pooler.fprop(pooled) : pooled;
  }

  /** States [B, T, modelDims] to [B, modelDims]. @param kept bool [B, T] */
  #pooled(states: Tensor, ids: Tensor, kept: Tensor): Tensor {
    const { pooling } = this.hp;
    const marked = pooling === 'endOfText' ? tf.logicalAnd(kept, this.#endsOfText(ids, kept)) : kept;
    // Tokens up to each, or from each on, of which the first and the last one count 1.
    const place = tf.cumsum(tf.cast(marked, 'int32'), 1, false, pooling === 'last');
    const isFirst = tf.logicalAnd(marked, tf.equal(place, tf.scalar(1, 'int32')));
    const taken = pooling === 'mean' ? kept : isFirst;
    const sum = tf.sum(selected(states, tf.expandDims(taken, -1)), 1) as Tensor;
    if (pooling !== 'mean') return sum;
    return tf.div(sum, tf.maximum(tf.sum(tf.cast(kept, 'float32'), 1, true), 1));
  }

  /** Whether a token of [B, T] ends a text. */
  #endsOfText(ids: Tensor, kept: Tensor): Tensor {
    const { endOfTextId } = this.hp;
    if (endOfTextId !== null) return tf.equal(ids, tf.scalar(endOfTextId, 'int32'));
    return tf.equal(ids, tf.max(tf.where(kept, ids, tf.zerosLike(ids)), 1, true));
  }
}
