/** @file T5 (Raffel et al., 2020), with the changes of version 1.1, and the names of its published weights. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import {
  DotProductAttention,
  Embedding,
  FeedForward,
  FullSoftmax,
  GShardSharedEmbeddingSoftmax,
  RelativeBias,
  RmsNorm,
  StackedTransformer,
  TransformerEncoderDecoder,
} from '../../layers/index.js';
import { SequenceModel } from '../sequenceModel.js';
import { activationOf } from './activationSettings.js';
import { attentionRules, linearRules, type NameRule, type NameRules } from './nameRules.js';

const count = z.int().positive();

/** The feed-forward layers, by `feed_forward_proj` of config.json. By the name gelu, gates have the tanh formula. */
const feedForwards = {
  relu: { activation: 'relu', isGated: false },
  'gated-gelu': { activation: 'gelu_new', isGated: true },
  'gated-silu': { activation: 'silu', isGated: true },
} as const;
type FeedForwardName = keyof typeof feedForwards;

/** config.json of model_type t5; defaults are those of transformers' T5Config. */
const settings = z.object({
  vocab_size: count.default(32_128),
  // A bound of the data that the first models were trained on; positions are relative.
  n_positions: z.unknown().optional(),
  d_model: count.default(512),
  d_kv: count.default(64),
  d_ff: count.default(2048),
  num_layers: count.default(6),
  num_decoder_layers: count.nullish(),
  num_heads: count.default(8),
  relative_attention_num_buckets: count.default(32),
  relative_attention_max_distance: count.default(128),
  dropout_rate: z.number().min(0).lt(1).default(0.1),
  layer_norm_epsilon: z.number().positive().default(1e-6),
  feed_forward_proj: z
    .enum(Object.keys(feedForwards) as [FeedForwardName, ...FeedForwardName[]])
    .default('relu'),
  is_encoder_decoder: z.literal(true).default(true),
  tie_word_embeddings: z.boolean().default(true),
  /** Whether logits are divided by sqrt(d_model); absent in files that tell version 1.1 by tie_word_embeddings. */
  scale_decoder_outputs: z.boolean().nullish(),
});

type Settings = z.output<typeof settings>;
type Half = 'encoder' | 'decoder';

/** A stack of pre-norm layers without biases and without a scale of the logits, whose layers share one relative bias. */
function stackOf(values: Settings, half: Half): Config<StackedTransformer> {
  const stack = StackedTransformer.config({
    numLayers: half === 'encoder' ? values.num_layers : (values.num_decoder_layers ?? values.num_layers),
    hiddenDims: values.d_ff,
    numHeads: values.num_heads,
    dimPerHead: values.d_kv,
    dropoutProb: values.dropout_rate,
    inputDropoutProb: values.dropout_rate,
  });
  const layer = stack.transformerLayerParamsTpl;
  layer.lnTpl = norm(values);
  const attention = () => DotProductAttention.config({ useBias: false, internalEnableQueryScale: false });
  layer.crossAttenTpl = half === 'decoder' ? attention() : null;
  layer.trAttenTpl = attention();
  layer.trAttenTpl.relativeBiasTpl = RelativeBias.config({
    sharedWeightLayerId: `${half}_relative_bias`,
    bidirectional: half === 'encoder',
    relativeAttentionNumBuckets: values.relative_attention_num_buckets,
    relativeAttentionMaxDistance: values.relative_attention_max_distance,
  });
  layer.trFflayerTpl.lnTpl = norm(values);
  layer.trFflayerTpl.hasBias = false;
  const { activation, isGated } = feedForwards[values.feed_forward_proj];
  layer.trFflayerTpl.activationTpl = activationOf(activation);
  layer.trFflayerTpl.useGatedActivation = isGated;
  return stack;
}

const norm = ({ layer_norm_epsilon: epsilon }: Settings) => RmsNorm.config({ epsilon });

/** The softmax with the table of the embeddings, or, in version 1.1, one of its own. */
function vocabularyOf({ vocab_size: numClasses, ...values }: Settings) {
  if (values.scale_decoder_outputs ?? values.tie_word_embeddings)
    return {
      softmaxTpl: GShardSharedEmbeddingSoftmax.config({
        numClasses,
        useTgtLabelsSizeAsLossDenominator: false,
      }),
    };
  const feedForwardTpl = FeedForward.config({ hasBias: false });
  return {
    softmaxTpl: FullSoftmax.config({ numClasses, feedForwardTpl }),
    decoderEmbeddingTpl: Embedding.config({ numClasses }),
  };
}

/** The model of a config.json of T5. @throws ZodError for settings that it has no counterpart of */
export function t5FromSettings(json: unknown): Config<SequenceModel> {
  const values = settings.parse(json);
  const modelTpl = TransformerEncoderDecoder.config({
    ...{ modelDims: values.d_model, positionEmbTpl: null },
    encoderStackedTransformerTpl: stackOf(values, 'encoder'),
    encoderLnTpl: norm(values),
    decoderStackedTransformerTpl: stackOf(values, 'decoder'),
    decoderLnTpl: norm(values),
    ...vocabularyOf(values),
  });
  return SequenceModel.config({ modelTpl });
}

const moduleRules = (variable: string, module: string): NameRule[] =>
  attentionRules(variable, (part) => `${module}.${part[0]}`, `${module}.o`);

/** The rules of a half, whose layers have their sub-layers by number. */
function stackRules(half: Half): NameRule[] {
  const [layer, tensor] = [`.*/${half}/x_layers_(\\d+)`, `${half}.block.{}.layer`];
  const last = half === 'encoder' ? 1 : 2;
  const linear = (variable: string, name: string): NameRule[] =>
    linearRules(`${layer}/ff_layer/${variable}`, `${tensor}.${last}.DenseReluDense.${name}`);
  return [
    ...moduleRules(`${layer}/self_attention`, `${tensor}.0.SelfAttention`),
    [`${layer}/layer_norm/scale`, `${tensor}.0.layer_norm.weight`],
    ...moduleRules(`${layer}/cross_attention`, `${tensor}.1.EncDecAttention`),
    [`${layer}/cross_layer_norm/scale`, `${tensor}.1.layer_norm.weight`],
    ...linear('ffn_layer1_gate', 'wi_0'),
    ...linear('ffn_layer1', 'wi_1'),
    ...linear('ffn_layer1', 'wi'),
    ...linear('ffn_layer2', 'wo'),
    [`${layer}/ff_layer/layer_norm/scale`, `${tensor}.${last}.layer_norm.weight`],
    [`.*/${half}_ln/scale`, `${half}.final_layer_norm.weight`],
    [
      `${half}_relative_bias/cld/wrb`,
      `${half}.block.0.layer.0.SelfAttention.relative_attention_bias.weight`,
      'b n -> n b',
    ],
  ];
}

/** Names of T5's weights. */
export const t5Names: NameRules = {
  rules: [
    ['.*/softmax/embedding/w', 'shared.weight'],
    ['.*/decoder_embedding_lookup/emb_var', 'shared.weight'],
    ['.*/softmax/logits_ffn/linear/w', 'lm_head.weight', 'v d -> d v'],
    ['.*/softmax/logits_ffn/linear/w', 'shared.weight', 'v d -> d v'],
    ...stackRules('encoder'),
    ...stackRules('decoder'),
  ],
  prefixes: [],
  // Early versions of transformers wrote a bias that cross-attention does not read.
  buffers: ['decoder\\.block\\.0\\.layer\\.1\\.EncDecAttention\\.relative_attention_bias\\.weight'],
  copies: {
    'encoder.embed_tokens.weight': 'shared.weight',
    'decoder.embed_tokens.weight': 'shared.weight',
    'lm_head.weight': 'shared.weight',
  },
};
