/** @file Llama style language models, and the names of their published weights. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import {
  DotProductAttention,
  Embedding,
  FeedForward,
  FullSoftmax,
  Gaussian,
  GroupedQueryAttention,
  NClassMajorSharedEmbeddingSoftmax,
  RmsNorm,
  RotaryPositionalEmbedding,
  SiLU,
  StackedTransformer,
  TransformerLm,
} from '../../layers/index.js';
import { LAYER, linearRules, type NameRules, projectionRules } from './nameRules.js';
import { rotaryFields, rotaryOf } from './rotarySettings.js';

/** Shape of a Llama style model. */
export interface LlamaOptions {
  readonly vocabSize: number;
  readonly modelDims: number;
  readonly numLayers: number;
  readonly numHeads: number;
  /** Hidden depth of the feed-forward layers. */
  readonly hiddenDims: number;
  /** Heads of keys and values, which query heads share in groups. Default numHeads. */
  readonly numKvHeads?: number;
  /** Depth of a head. Default modelDims / numHeads. */
  readonly dimPerHead?: number;
  /** Base of the rotations' wavelengths. Default 10000. */
  readonly ropeTheta?: number;
  /** Rotations in place of those by `ropeTheta`. */
  readonly rotaryTpl?: Config<RotaryPositionalEmbedding>;
  /** Added to the mean square of norms. Default 1e-5. */
  readonly normEpsilon?: number;
  /** Whether embeddings and softmax have one table. Default false. */
  readonly tiedEmbeddings?: boolean;
  /** Whether attention's projections have biases. Default false. */
  readonly attentionBias?: boolean;
  /** Whether feed-forward layers have biases. Default false. */
  readonly feedForwardBias?: boolean;
  /** Probability of dropout of attention weights and branch outputs. Default 0. */
  readonly dropoutProb?: number;
  /** Standard deviation of every initial weight. Default 0.02. */
  readonly initStd?: number;
}

/**
 * Llama's network (Touvron et al., 2023): RMS norms before the branches and at the end, rotated queries and keys, grouped
 * queries, feed-forward layers gated by SiLU, and a softmax with a table of its own.
 */
export function llamaLm(options: LlamaOptions): Config<TransformerLm> {
  const { vocabSize, modelDims, numLayers, numHeads, hiddenDims, numKvHeads = numHeads } = options;
  const { ropeTheta = 10_000, normEpsilon = 1e-5, dropoutProb = 0 } = options;
  const norm = () => RmsNorm.config({ epsilon: normEpsilon });
  const stack = StackedTransformer.config({ numLayers, hiddenDims, numHeads, dropoutProb });
  stack.dimPerHead = options.dimPerHead ?? null;
  const layer = stack.transformerLayerParamsTpl;
  layer.lnTpl = norm();
  layer.trAttenTpl =
    numKvHeads === numHeads ? DotProductAttention.config() : GroupedQueryAttention.config({ numKvHeads });
  layer.trAttenTpl.useBias = options.attentionBias ?? false;
  layer.trAttenTpl.internalEnablePerDimScale = false;
  layer.trAttenTpl.scaleQueryByDimPerHead = true;
  layer.trAttenTpl.useRotaryPositionEmb = true;
  layer.trAttenTpl.rotaryPositionEmbTpl =
    options.rotaryTpl ?? RotaryPositionalEmbedding.config({ maxTimescale: ropeTheta });
  layer.trFflayerTpl.lnTpl = norm();
  layer.trFflayerTpl.hasBias = options.feedForwardBias ?? false;
  layer.trFflayerTpl.activationTpl = SiLU.config();
  layer.trFflayerTpl.useGatedActivation = true;
  const lm = TransformerLm.config({
    vocabSize,
    modelDims,
    positionEmbTpl: null,
    stackedTransformerTpl: stack,
    softmaxTpl: options.tiedEmbeddings
      ? NClassMajorSharedEmbeddingSoftmax.config({ hasBias: false })
      : FullSoftmax.config({ feedForwardTpl: FeedForward.config({ hasBias: false }) }),
    finalLnTpl: norm(),
  });
  if (!options.tiedEmbeddings) lm.separateEmbeddingTpl = Embedding.config();
  lm.paramsInit = Gaussian.config({ scale: options.initStd ?? 0.02 });
  return lm;
}

const count = z.int().positive();
const positive = z.number().positive();

const block = z.literal(128);

/** Packing of published weights, which are read as what they unpack to. */
const quantization = z.discriminatedUnion('quant_method', [
  z.looseObject({ quant_method: z.literal('mxfp4') }),
  z.looseObject({ quant_method: z.literal('fp8'), weight_block_size: z.tuple([block, block]).nullish() }),
]);

/** Fields of a config.json of Llama, and of families that go back to it; defaults are those of transformers' LlamaConfig. */
export const llamaFields = {
  vocab_size: count.default(32_000),
  hidden_size: count.default(4096),
  intermediate_size: count.default(11_008),
  num_hidden_layers: count.default(32),
  num_attention_heads: count.default(32),
  num_key_value_heads: count.nullish(),
  head_dim: count.nullish(),
  hidden_act: z.enum(['silu', 'swish']).default('silu'),
  rms_norm_eps: positive.default(1e-6),
  ...rotaryFields,
  attention_bias: z.boolean().default(false),
  mlp_bias: z.boolean().default(false),
  attention_dropout: z.number().min(0).lt(1).default(0),
  initializer_range: z.number().nonnegative().default(0.02),
  tie_word_embeddings: z.boolean().default(false),
  quantization_config: quantization.nullish(),
};

/** config.json of model_type llama; defaults are those of transformers' LlamaConfig. */
export const llamaSchema = z.object(llamaFields);

/** The fields that the network depends on; activations are a family's own. */
export type LlamaSettings = Omit<z.output<typeof llamaSchema>, 'hidden_act'>;

/** Llama's network by the settings of a config.json. @param defaultTheta as rotaryOf */
export function llamaOf(values: LlamaSettings, defaultTheta?: number): Config<TransformerLm> {
  const lm = llamaLm({
    vocabSize: values.vocab_size,
    modelDims: values.hidden_size,
    numLayers: values.num_hidden_layers,
    numHeads: values.num_attention_heads,
    hiddenDims: values.intermediate_size,
    ...(values.num_key_value_heads != null && { numKvHeads: values.num_key_value_heads }),
    ...(values.head_dim != null && { dimPerHead: values.head_dim }),
    rotaryTpl: rotaryOf(values, defaultTheta),
    normEpsilon: values.rms_norm_eps,
    tiedEmbeddings: values.tie_word_embeddings,
    attentionBias: values.attention_bias,
    feedForwardBias: values.mlp_bias,
    initStd: values.initializer_range,
  });
  lm.stackedTransformerTpl.attenDropoutProb = values.attention_dropout;
  return lm;
}

/** The network of a config.json of Llama. @throws ZodError for settings that it has no counterpart of */
export const llamaFromSettings = (json: unknown): Config<TransformerLm> => llamaOf(llamaSchema.parse(json));

/** Names of Llama's weights. */
export const llamaNames: NameRules = {
  rules: [
    ['.*/embedding_lookup/emb_var', 'embed_tokens.weight'],
    ['.*/softmax/w', 'embed_tokens.weight'],
    ['.*/softmax/logits_ffn/linear/w', 'lm_head.weight', 'v d -> d v'],
    ['.*/softmax/logits_ffn/linear/w', 'embed_tokens.weight', 'v d -> d v'],
    ['.*/final_ln/scale', 'norm.weight'],
    [`${LAYER}/layer_norm/scale`, 'layers.{}.input_layernorm.weight'],
    ...projectionRules(`${LAYER}/self_attention`, 'layers.{}.self_attn', 'o_proj'),
    [`${LAYER}/ff_layer/layer_norm/scale`, 'layers.{}.post_attention_layernorm.weight'],
    ...linearRules(`${LAYER}/ff_layer/ffn_layer1_gate`, 'layers.{}.mlp.gate_proj'),
    ...linearRules(`${LAYER}/ff_layer/ffn_layer1`, 'layers.{}.mlp.up_proj'),
    ...linearRules(`${LAYER}/ff_layer/ffn_layer2`, 'layers.{}.mlp.down_proj'),
  ],
  prefixes: ['model.'],
  buffers: ['(layers\\.\\d+\\.self_attn\\.)?rotary_emb\\.inv_freq'],
  copies: { 'lm_head.weight': 'embed_tokens.weight' },
};
