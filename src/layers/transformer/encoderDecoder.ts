/** @file TransformerEncoderDecoder: a stack over a source, and one over a target that attends to it (praxis/layers/transformer_models.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type Config, sub } from '../../hparams/index.js';
import { BasePositionalEmbedding, PositionalEmbedding, stepsFrom } from '../attention/positions.js';
import type { Visibility } from '../attention/visibility.js';
import { BaseSoftmax } from '../baseSoftmax.js';
import { BaseLayer } from '../core/base.js';
import type { DecodeStateSpec } from '../core/context.js';
import type { StepArgs } from '../core/mixer.js';
import { Embedding } from '../embeddings.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';
import { SharedEmbeddingSoftmax } from '../softmaxes.js';
import { ConvolutionalStem } from '../speech/convolutionalStem.js';
import { type LmLabels, type LmOutput, lossesOf } from './lmLosses.js';
import { StackedTransformer } from './stackedTransformers.js';
import { lookupOf, type TokenLookup } from './tokenLookup.js';

/** A source or a target; tensors are [B, S]. */
export interface SequenceInputs {
  /** int32 token ids. */
  readonly ids: Tensor;
  /** float32, 1 for padding; none where absent. */
  readonly paddings?: Tensor | undefined;
  /** int32, the sequence that a token of a packed row belongs to. Required for packed input. */
  readonly segmentIds?: Tensor | undefined;
  /** int32, positions within sequences. Required for packed input. */
  readonly segmentPos?: Tensor | undefined;
}

/** A source: tokens, or the features of a network with a stem, and then without segments. */
export interface SourceInputs extends Partial<SequenceInputs> {
  /** float32 [B, S, F]. */
  readonly features?: Tensor | undefined;
}

/** The encoder's output, which the decoder attends to. */
interface EncodedSource {
  /** [B, M, modelDims]. */
  readonly states: Tensor;
  /** [B, M], 1 for padding; none where absent. */
  readonly paddings?: Tensor | undefined;
}

const positionsField = () =>
  sub(BasePositionalEmbedding, null)
    .nullable()
    .default(null)
    .describe('Positions of the one half; null: positionEmbTpl, for both.');
const embeddingField = (otherwise: string) =>
  sub(Embedding, null).nullable().default(null).describe(`The token embedding; null: ${otherwise}.`);
const normField = () =>
  sub(BaseNormalization, () => LayerNorm.config())
    .nullable()
    .describe('The norm after its last layer; null: none.');

/**
 * The encoder's tokens see each other, the decoder's those before them and, in each layer, all of the encoder's (Vaswani et al.,
 * 2017). Padding is hidden from all.
 */
export class TransformerEncoderDecoder extends BaseLayer.with({
  modelDims: z.int().positive().describe('Depth of the model.'),
  packedInput: z
    .boolean()
    .default(false)
    .describe('Whether rows hold several pairs, told apart by segment ids.'),
  positionEmbTpl: sub(BasePositionalEmbedding, () => PositionalEmbedding.config())
    .nullable()
    .describe('Position embeddings of both halves; null where they have their own, or none.'),
  encoderPositionEmbTpl: positionsField(),
  encoderStackedTransformerTpl: sub(StackedTransformer).describe("The encoder's layers."),
  encoderEmbeddingTpl: embeddingField("the decoder's"),
  encoderStemTpl: sub(ConvolutionalStem, null)
    .nullable()
    .default(null)
    .describe('What makes vectors of features, which a source has in the place of tokens; null: tokens.'),
  encoderLnTpl: normField(),
  decoderPositionEmbTpl: positionsField(),
  decoderStackedTransformerTpl: sub(StackedTransformer).describe(
    "The decoder's layers; each attends to the encoder.",
  ),
  decoderEmbeddingTpl: embeddingField("the softmax's weights"),
  decoderLnTpl: normField(),
  softmaxTpl: sub(BaseSoftmax, () => SharedEmbeddingSoftmax.config()).describe(
    'The softmax over numClasses tokens.',
  ),
}) {
  protected encoder!: StackedTransformer;
  protected decoder!: StackedTransformer;
  protected softmax!: BaseSoftmax;
  #encoderNorm: BaseNormalization | null = null;
  #decoderNorm: BaseNormalization | null = null;
  #stem: ConvolutionalStem | null = null;
  #sourceTokens!: TokenLookup;
  #targetTokens!: TokenLookup;
  #sourcePositions: BasePositionalEmbedding | null = null;
  #targetPositions: BasePositionalEmbedding | null = null;

  protected override setup(): void {
    const { hp } = this;
    const { modelDims } = hp;
    if (hp.positionEmbTpl && (hp.encoderPositionEmbTpl ?? hp.decoderPositionEmbTpl))
      throw this.error('positionEmbTpl is set, and so are positions of one half: set one or the other.');
    if (hp.encoderStemTpl && (hp.encoderEmbeddingTpl || hp.packedInput))
      throw this.error(
        `encoderStemTpl is set: features have no ${hp.packedInput ? 'segments, which packedInput reads' : 'encoderEmbeddingTpl'}.`,
      );
    const positions = (name: string, tpl: Config<BasePositionalEmbedding> | null) =>
      tpl && this.createChild(name, tpl, { embeddingDims: modelDims });
    const norm = (name: string, tpl: Config<BaseNormalization> | null) =>
      tpl && this.createChild(name, tpl, { dim: modelDims });
    const lookup = (name: string, tpl: Config<Embedding> | null) =>
      tpl && this.createChild(name, tpl, { inputDims: modelDims });
    const shared = positions('position_emb', hp.positionEmbTpl);
    this.#sourcePositions = positions('encoder_position_emb', hp.encoderPositionEmbTpl) ?? shared;
    if (hp.encoderStemTpl)
      this.#stem = this.createChild('encoder_stem', hp.encoderStemTpl, { outputDims: modelDims });
    this.encoder = this.createChild('encoder', hp.encoderStackedTransformerTpl, { modelDims });
    const source = lookup('encoder_embedding_lookup', hp.encoderEmbeddingTpl);
    this.#encoderNorm = norm('encoder_ln', hp.encoderLnTpl);
    this.#targetPositions = positions('decoder_position_emb', hp.decoderPositionEmbTpl) ?? shared;
    this.decoder = this.createChild('decoder', hp.decoderStackedTransformerTpl, {
      modelDims,
      useCrossAttention: true,
    });
    const target = lookup('decoder_embedding_lookup', hp.decoderEmbeddingTpl);
    this.#decoderNorm = norm('decoder_ln', hp.decoderLnTpl);
    this.softmax = this.createChild('softmax', hp.softmaxTpl, { inputDims: modelDims });
    this.#targetTokens = target ?? lookupOf(this, this.softmax);
    this.#sourceTokens = source ?? this.#targetTokens;
  }

  #embedTarget(target: SequenceInputs, position = this.#positionsOf(target)): Tensor {
    const { ids } = target;
    return this.#placed(this.#targetTokens.embLookup(ids), this.#targetPositions, position);
  }

  /** The encoder's input, with its paddings. @throws LayerError for a source without tokens, or without features for a stem */
  #embedSource(source: SourceInputs): EncodedSource {
    const { ids, features, paddings } = source;
    const given = this.#stem ? features : ids;
    if (!given)
      throw this.error(`the source lacks ${this.#stem ? 'features, which encoderStemTpl reads' : 'ids'}.`);
    const read = this.#stem?.fprop(given, paddings) ?? {
      features: this.#sourceTokens.embLookup(given),
      paddings,
    };
    return {
      states: this.#placed(read.features, this.#sourcePositions, this.#positionsOf(source)),
      paddings: read.paddings,
    };
  }

  #positionsOf({ segmentPos }: SourceInputs): Tensor | undefined {
    return this.hp.packedInput ? segmentPos : undefined;
  }

  /** Vectors [B, S, modelDims] with positions: 0 to S - 1, or those of packed input or of a step. */
  #placed(x: Tensor, positions: BasePositionalEmbedding | null, position: Tensor | undefined): Tensor {
    if (!positions) return x;
    positions.checkLength(x.shape[1]!);
    return tf.add(x, position ? positions.atPositions(position) : positions.fprop(x.shape[1]!));
  }

  /** Length of the encoder's output for a source of so many tokens or frames. */
  encodedLength(sourceLen: number): number {
    return this.#stem ? this.#stem.numFrames(sourceLen) : sourceLen;
  }

  /** The encoder's output. */
  encode(source: SourceInputs): EncodedSource {
    const { states, paddings } = this.#embedSource(source);
    const embedded = { ...source, paddings };
    const x = this.encoder.fprop(states, { seen: this.#seen(embedded, embedded), paddings });
    return { states: this.#encoderNorm ? this.#encoderNorm.fprop(x) : x, paddings };
  }

  /**
   * The decoder's activations after its norm, [B, T, modelDims].
   *
   * @param source [B, S]; or [B / n, S], encoded once, for targets that are n batches one behind the other.
   */
  activations(source: SourceInputs, target: SequenceInputs): Tensor {
    const rows = target.ids.shape[0]!;
    const encoded = this.encode(source);
    const states = repeated(encoded.states, rows);
    const paddings = encoded.paddings && repeated(encoded.paddings, rows);
    const memory = { states, seen: this.#seen(target, { ...source, paddings }) };
    const seen = { ...this.#seen(target, target), causal: true };
    const x = this.decoder.fprop(this.#embedTarget(target), { seen, paddings: target.paddings, memory });
    return this.#decoderNorm ? this.#decoderNorm.fprop(x) : x;
  }

  /** Predictions and losses of a batch. */
  fprop(source: SourceInputs, target: SequenceInputs, labels: LmLabels): LmOutput {
    return lossesOf(this, this.softmax, this.activations(source, target), labels);
  }

  /** State of its own: the paddings of sources, which all steps read. @param sourceLen `encodedLength` of the source */
  override decodeStateSpecs(
    rows: number,
    _seqLen: number,
    sourceLen: number,
  ): Record<string, DecodeStateSpec> {
    return { source_paddings: { shape: [rows, sourceLen], dtype: 'float32' } };
  }

  /** Begins a decode: encodes the source, which all steps read. */
  begin(source: SourceInputs): void {
    const { states, paddings } = this.encode(source);
    this.updateDecodeState('source_paddings', paddings ?? (tf.zeros(states.shape.slice(0, 2)) as Tensor));
    this.decoder.begin(states);
  }

  /**
   * Logits of the token after each of `ids`, given earlier ones, which are in the decode state, and the source that `begin` got.
   *
   * @param ids int32 [B]: the tokens at `timeStep`; or [B, T]: those from `timeStep` on.
   * @returns [B, numClasses], or [B, T, numClasses].
   */
  extendStep(ids: Tensor, args: StepArgs): Tensor {
    const [batch, steps = 1] = ids.shape as [number, number?];
    const rows = tf.reshape(ids, [batch, steps]) as Tensor;
    const memorySeen = { paddings: this.getDecodeState('source_paddings') };
    const embedded = this.#embedTarget({ ids: rows }, stepsFrom(args.timeStep, steps));
    const x = this.decoder.extendStep(embedded, { ...args, memorySeen });
    const logits = this.softmax.getLogits(this.#decoderNorm ? this.#decoderNorm.fprop(x) : x);
    return tf.reshape(logits, [...ids.shape, logits.shape.at(-1)!]);
  }

  /** Visibility of the tokens of one sequence to those of another. @throws LayerError where a packed one lacks its segments */
  #seen(queries: SourceInputs, keys: SourceInputs): Visibility {
    const { packedInput } = this.hp;
    const both = [queries, keys];
    if (packedInput && both.some(({ segmentIds, segmentPos }) => !(segmentIds && segmentPos)))
      throw this.error('packedInput is set, and the batch lacks segmentIds or segmentPos.');
    return {
      ...(packedInput && {
        segments: { queries: queries.segmentIds!, keys: keys.segmentIds! },
        positions: { queries: queries.segmentPos!, keys: keys.segmentPos! },
      }),
      ...(keys.paddings && { paddings: keys.paddings }),
    };
  }
}

/** Rows of `x` [B, …], all of them again until there are `rows`. */
function repeated(x: Tensor, rows: number): Tensor {
  const [given, ...rest] = x.shape as [number, ...number[]];
  return rows === given ? x : tf.tile(x, [rows / given, ...rest.map(() => 1)]);
}
