/** @file TransformerLm: embeddings, a stack of transformer layers, a softmax (praxis/layers/transformer_models.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { sub } from '../../hparams/index.js';
import { taken } from '../attention/caches.js';
import { BasePositionalEmbedding, PositionalEmbedding, stepsFrom } from '../attention/positions.js';
import type { Visibility } from '../attention/visibility.js';
import { BaseSoftmax } from '../baseSoftmax.js';
import { BaseLayer } from '../core/base.js';
import type { StepArgs } from '../core/mixer.js';
import { Embedding } from '../embeddings.js';
import type { PairArgs } from '../ngrammer/bigrams.js';
import { BaseNgrammer } from '../ngrammer/ngrammers.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';
import { SharedEmbeddingSoftmax } from '../softmaxes.js';
import { auxLossOf, type LmLabels, type LmOutput, lossesOf } from './lmLosses.js';
import { StackedTransformer } from './stackedTransformers.js';
import { lookupOf, type TokenLookup } from './tokenLookup.js';
import { TokenTypeEmbedding } from './tokenTypes.js';
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
  /** float32, 1 for the leading tokens that are the prefix of a row. Required for prefix models. */
  readonly inputsIndicator?: Tensor | undefined;
  /** int32, types of tokens; 0 where absent. Read where `tokenTypeEmbTpl` is set. */
  readonly tokenTypes?: Tensor | undefined;
  /** A sequence that the layers attend to, such as an encoder's output. Required where they have cross-attention. */
  readonly memory?: Memory | undefined;
}

/** Arguments of the embedding of tokens. */
interface EmbedArgs extends Pick<PairArgs, 'paddings'> {
  /** In a decode. */
  readonly step?: StepArgs | undefined;
  readonly tokenTypes?: Tensor | undefined;
}

/** Leading tokens of each row that are 1, int32 [B]. */
const prefixOf = (indicator: Tensor): Tensor => tf.cast(tf.sum(tf.cumprod(indicator, 1), 1), 'int32');

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
    .enum(['causal', 'prefix', 'bidirectional'])
    .default('causal')
    .describe('Whether a token sees those before it only; those and the whole prefix of its row; or all.'),
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
  tokenTypeEmbTpl: sub(TokenTypeEmbedding, null)
    .nullable()
    .default(null)
    .describe("Types of tokens, and the norm of the stack's input, as in BERT; null: neither."),
  stackedTransformerTpl: sub(StackedTransformer).describe('The stack of layers.'),
  separateEmbeddingTpl: sub(Embedding)
    .nullable()
    .default(null)
    .describe("The token embedding; null: the softmax's weights."),
  ngrammerTpl: sub(BaseNgrammer, null)
    .nullable()
    .default(null)
    .describe('What adds pairs of tokens to token embeddings, before positions are added; null: nothing.'),
  softmaxTpl: sub(BaseSoftmax, () => SharedEmbeddingSoftmax.config()).describe(
    'The softmax over the vocabulary.',
  ),
  finalLnTpl: sub(BaseNormalization, () => LayerNorm.config())
    .nullable()
    .describe('The norm after the last layer; null: none.'),
}) {
  protected positions: BasePositionalEmbedding | null = null;
  protected tokenTypes: TokenTypeEmbedding | null = null;
  protected embedding!: TokenLookup;
  protected ngrammer: BaseNgrammer | null = null;
  protected transformer!: StackedTransformer;
  protected finalNorm: BaseNormalization | null = null;
  protected softmax!: BaseSoftmax;

  protected override setup(): void {
    const { hp } = this;
    const { modelDims, vocabSize } = hp;
    const dims = { inputDims: modelDims, numClasses: vocabSize };
    if (hp.positionEmbTpl)
      this.positions = this.createChild('position_emb', hp.positionEmbTpl, { embeddingDims: modelDims });
    if (hp.tokenTypeEmbTpl)
      this.tokenTypes = this.createChild('token_type_emb', hp.tokenTypeEmbTpl, { embeddingDims: modelDims });
    const separate =
      hp.separateEmbeddingTpl && this.createChild('embedding_lookup', hp.separateEmbeddingTpl, dims);
    if (hp.ngrammerTpl) {
      this.ngrammer = this.createChild('ngrammer', hp.ngrammerTpl, { unigramVocabSize: vocabSize });
      const { numHeads, dimPerHead } = this.ngrammer.hp;
      if (numHeads * dimPerHead !== modelDims)
        throw this.error(
          `ngrammerTpl: expected numHeads x dimPerHead to be modelDims ${modelDims}, got ${numHeads} x ${dimPerHead}.`,
        );
    }
    if (hp.modelType === 'prefix' && hp.packedInput)
      throw this.error("modelType is 'prefix', and packedInput is set: a prefix leads a row, not a segment.");
    this.transformer = this.createChild('transformer', hp.stackedTransformerTpl, { modelDims });
    if (hp.finalLnTpl) this.finalNorm = this.createChild('final_ln', hp.finalLnTpl, { dim: modelDims });
    this.softmax = this.createChild('softmax', hp.softmaxTpl, dims);
    this.embedding = separate ?? lookupOf(this, this.softmax);
  }

  /** Activations [B, T, modelDims] after the final norm. */
  activations(inputs: LmInputs): Tensor {
    return this.normalize(this.states(inputs));
  }

  /** The stack's output, [B, T, modelDims]. */
  protected states(inputs: LmInputs): Tensor {
    const seen = this.visibility(inputs);
    const paddings = this.hp.usePaddings ? inputs.paddings : undefined;
    // A packed document may be as long as its row.
    this.positions?.checkLength(inputs.ids.shape[1]!);
    const x = this.embed(inputs.ids, seen.positions?.queries, { paddings, tokenTypes: inputs.tokenTypes });
    return this.transformer.fprop(x, { seen, paddings, memory: inputs.memory });
  }

  /**
   * Input of the stack: token, n-gram, position and type embeddings, [B, T, modelDims].
   *
   * @param ids int32 [B, T].
   * @param position int32 [B, T] or [1, T]; default 0 to T - 1.
   * @param of the paddings and token types of whole sequences, or the step of a decode.
   */
  protected embed(ids: Tensor, position?: Tensor, of: EmbedArgs = {}): Tensor {
    const x = this.#withNgrams(ids, this.embedding.embLookup(ids), position, of);
    const places = position ? this.positions?.atPositions(position) : this.positions?.fprop(ids.shape[1]!);
    const placed = places ? tf.add(x, places) : x;
    return this.tokenTypes ? this.tokenTypes.fprop(placed, of.tokenTypes) : placed;
  }

  #withNgrams(ids: Tensor, x: Tensor, segmentPos: Tensor | undefined, of: EmbedArgs): Tensor {
    if (!this.ngrammer) return x;
    if (of.step) return this.ngrammer.extendStep(ids, x, of.step);
    return this.ngrammer.fprop(ids, x, { segmentPos, paddings: of.paddings });
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
  fprop(inputs: LmInputs, labels: LmLabels): LmOutput {
    return lossesOf(this, this.softmax, this.activations(inputs), labels, () => this.auxLoss());
  }

  /** Begins a decode that attends to a memory's states [B, M, modelDims]. */
  begin(states: Tensor): void {
    this.transformer.begin(states);
  }

  /**
   * Logits of the token after each of `ids`, given earlier tokens, which are in the decode state. A prefix model takes all
   * tokens of a prefix in one step, with `prefix`.
   *
   * @param ids int32 [B]: the tokens at `timeStep`; or [B, T]: those from `timeStep` on.
   * @returns [B, vocabSize], or [B, T, vocabSize]; of those at `logitsAt` alone [B, vocabSize].
   */
  extendStep(ids: Tensor, args: StepArgs): Tensor {
    const { modelType, vocabSize } = this.hp;
    if (modelType === 'bidirectional')
      throw this.error("decodes step by step: expected modelType 'causal' or 'prefix', got 'bidirectional'.");
    if (args.prefix && modelType !== 'prefix')
      throw this.error(`expected modelType 'prefix' for tokens that see each other, got '${modelType}'.`);
    const [batch, steps = 1] = ids.shape as [number, number?];
    const x = this.embed(tf.reshape(ids, [batch, steps]), stepsFrom(args.timeStep, steps), { step: args });
    const states = this.transformer.extendStep(x, args);
    const { logitsAt } = args;
    const asked = logitsAt ? taken(states, tf.expandDims(logitsAt, 1) as Tensor) : states;
    const logits = this.softmax.getLogits(this.normalize(asked));
    return tf.reshape(logits, logitsAt ? [batch, vocabSize] : [...ids.shape, vocabSize]);
  }

  /** Visibility of a batch's tokens. @throws LayerError if the batch lacks tensors for packedInput or usePaddings. */
  protected visibility({ paddings, segmentIds, segmentPos, inputsIndicator }: LmInputs): Visibility {
    const { packedInput, usePaddings, modelType } = this.hp;
    const isPrefixed = modelType === 'prefix';
    if (isPrefixed && !inputsIndicator)
      throw this.error("modelType is 'prefix', and the batch lacks inputsIndicator.");
    if (packedInput && !(segmentIds && segmentPos))
      throw this.error('packedInput is set, and the batch lacks segmentIds or segmentPos.');
    if (usePaddings && !paddings) throw this.error('usePaddings is set, and the batch lacks paddings.');
    const ofBoth = (x: Tensor) => ({ queries: x, keys: x });
    return {
      causal: modelType !== 'bidirectional',
      ...(isPrefixed && { prefix: prefixOf(inputsIndicator!) }),
      ...(packedInput && { segments: ofBoth(segmentIds!), positions: ofBoth(segmentPos!) }),
      ...(usePaddings && { paddings }),
    };
  }

  /** Weighted sum of the losses that layers added, a scalar; null if none did. */
  protected auxLoss(): Tensor | null {
    return auxLossOf(this);
  }
}
