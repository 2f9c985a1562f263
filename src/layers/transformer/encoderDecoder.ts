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

/** Embeds the tokens of one half, without and with positions. */
type Embeds = (inputs: SequenceInputs, position?: Tensor) => Tensor;

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
  #embedSource!: Embeds;
  #embedTarget!: Embeds;

  protected override setup(): void {
    const { hp } = this;
    const { modelDims } = hp;
    if (hp.positionEmbTpl && (hp.encoderPositionEmbTpl ?? hp.decoderPositionEmbTpl))
      throw this.error('positionEmbTpl is set, and so are positions of one half: set one or the other.');
    const positions = (name: string, tpl: Config<BasePositionalEmbedding> | null) =>
      tpl && this.createChild(name, tpl, { embeddingDims: modelDims });
    const norm = (name: string, tpl: Config<BaseNormalization> | null) =>
      tpl && this.createChild(name, tpl, { dim: modelDims });
    const lookup = (name: string, tpl: Config<Embedding> | null) =>
      tpl && this.createChild(name, tpl, { inputDims: modelDims });
    const shared = positions('position_emb', hp.positionEmbTpl);
    const ofEncoder = positions('encoder_position_emb', hp.encoderPositionEmbTpl) ?? shared;
    this.encoder = this.createChild('encoder', hp.encoderStackedTransformerTpl, { modelDims });
    const source = lookup('encoder_embedding_lookup', hp.encoderEmbeddingTpl);
    this.#encoderNorm = norm('encoder_ln', hp.encoderLnTpl);
    const ofDecoder = positions('decoder_position_emb', hp.decoderPositionEmbTpl) ?? shared;
    this.decoder = this.createChild('decoder', hp.decoderStackedTransformerTpl, {
      modelDims,
      useCrossAttention: true,
    });
    const target = lookup('decoder_embedding_lookup', hp.decoderEmbeddingTpl);
    this.#decoderNorm = norm('decoder_ln', hp.decoderLnTpl);
    this.softmax = this.createChild('softmax', hp.softmaxTpl, { inputDims: modelDims });
    const tokens = target ?? lookupOf(this, this.softmax);
    this.#embedTarget = this.#embeds(tokens, ofDecoder);
    this.#embedSource = this.#embeds(source ?? tokens, ofEncoder);
  }

  #embeds(tokens: TokenLookup, positions: BasePositionalEmbedding | null): Embeds {
    return ({ ids, segmentPos }, position = this.hp.packedInput ? segmentPos : undefined) => {
      const x = tokens.embLookup(ids);
      if (!positions) return x;
      positions.checkLength(ids.shape[1]!);
      return tf.add(x, position ? positions.atPositions(position) : positions.fprop(ids.shape[1]!));
    };
  }

  /** The encoder's output, [B, S, modelDims]. */
  encode(source: SequenceInputs): Tensor {
    const seen = this.#seen(source, source);
    const x = this.encoder.fprop(this.#embedSource(source), { seen, paddings: source.paddings });
    return this.#encoderNorm ? this.#encoderNorm.fprop(x) : x;
  }

  /**
   * The decoder's activations after its norm, [B, T, modelDims].
   *
   * @param source [B, S]; or [B / n, S], encoded once, for targets that are n batches one behind the other.
   */
  activations(source: SequenceInputs, target: SequenceInputs): Tensor {
    const rows = target.ids.shape[0]!;
    const states = repeated(this.encode(source), rows);
    const paddings = source.paddings && repeated(source.paddings, rows);
    const memory = { states, seen: this.#seen(target, { ...source, paddings }) };
    const seen = { ...this.#seen(target, target), causal: true };
    const x = this.decoder.fprop(this.#embedTarget(target), { seen, paddings: target.paddings, memory });
    return this.#decoderNorm ? this.#decoderNorm.fprop(x) : x;
  }

  /** Predictions and losses of a batch. */
  fprop(source: SequenceInputs, target: SequenceInputs, labels: LmLabels): LmOutput {
    return lossesOf(this, this.softmax, this.activations(source, target), labels);
  }

  /** State of its own: the paddings of sources, which all steps read. */
  override decodeStateSpecs(
    rows: number,
    _seqLen: number,
    sourceLen: number,
  ): Record<string, DecodeStateSpec> {
    return { source_paddings: { shape: [rows, sourceLen], dtype: 'float32' } };
  }

  /** Begins a decode: encodes the source, which all steps read. */
  begin(source: SequenceInputs): void {
    this.updateDecodeState('source_paddings', source.paddings ?? (tf.zeros(source.ids.shape) as Tensor));
    this.decoder.begin(this.encode(source));
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
  #seen(queries: SequenceInputs, keys: SequenceInputs): Visibility {
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
  const times = rows / x.shape[0]!;
  return times === 1 ? x : tf.tile(x, [times, ...x.shape.slice(1).map(() => 1)]);
}
