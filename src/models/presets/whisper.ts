/** @file Whisper (Radford et al., 2022), and the names of its published weights. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import {
  ConvolutionalStem,
  Gaussian,
  NClassMajorSharedEmbeddingSoftmax,
  PositionalEmbedding,
  type StackedTransformer,
  TrainablePositionalEmbedding,
  TransformerEncoderDecoder,
} from '../../layers/index.js';
import { SequenceModel } from '../sequenceModel.js';
import { activationOf, activationSetting } from './activationSettings.js';
import { layerNorm, layerNormStack } from './layerNormStack.js';
import { linearRules, type NameRule, type NameRules, normRules, projectionRules } from './nameRules.js';

const count = z.int().positive();
const probability = z.number().min(0).lt(1).default(0);
const passedOver = z.unknown().optional();

/** config.json of model_type whisper; defaults are those of transformers' WhisperConfig. */
const settings = z.object({
  vocab_size: count.default(51_865),
  num_mel_bins: count.default(80),
  d_model: count.default(384),
  encoder_layers: count.default(4),
  encoder_attention_heads: count.default(6),
  encoder_ffn_dim: count.default(1536),
  decoder_layers: count.default(4),
  decoder_attention_heads: count.default(6),
  decoder_ffn_dim: count.default(1536),
  activation_function: activationSetting('gelu'),
  max_target_positions: count.default(448),
  scale_embedding: z.boolean().default(false),
  tie_word_embeddings: z.literal(true).default(true),
  init_std: z.number().positive().default(0.02),
  dropout: probability,
  attention_dropout: probability,
  activation_dropout: probability,
  encoder_layerdrop: z.literal(0).default(0),
  decoder_layerdrop: z.literal(0).default(0),
  apply_spec_augment: z.literal(false).default(false),
  is_encoder_decoder: z.literal(true).default(true),
  // Of sounds of another length than transformers takes, of masks that apply_spec_augment turns off, of classifiers, and of
  // generation.
  ...{ max_source_positions: passedOver, num_hidden_layers: passedOver, median_filter_width: passedOver },
  ...{ mask_time_prob: passedOver, mask_time_length: passedOver, mask_time_min_masks: passedOver },
  ...{ mask_feature_prob: passedOver, mask_feature_length: passedOver, mask_feature_min_masks: passedOver },
  ...{ classifier_proj_size: passedOver, use_weighted_layer_sum: passedOver },
  ...{ suppress_tokens: passedOver, begin_suppress_tokens: passedOver, forced_decoder_ids: passedOver },
});

type Settings = z.output<typeof settings>;

/** Added to the variance of norms. */
const EPSILON = 1e-5;

function stackOf(values: Settings, half: 'encoder' | 'decoder'): Config<StackedTransformer> {
  const stack = layerNormStack({
    numLayers: values[`${half}_layers`],
    numHeads: values[`${half}_attention_heads`],
    hiddenDims: values[`${half}_ffn_dim`],
    activationTpl: activationOf(values.activation_function),
    normEpsilon: EPSILON,
  });
  stack.transformerLayerParamsTpl.trAttenTpl.useKeyBias = false;
  stack.inputDropoutProb = values.dropout;
  stack.residualDropoutProb = values.dropout;
  stack.attenDropoutProb = values.attention_dropout;
  stack.reluDropoutProb = values.activation_dropout;
  return stack;
}

/**
 * The model of a config.json of Whisper: its source is the features of `WhisperLogMel`, its targets begin with the tokens of the
 * language and the task.
 *
 * @throws ZodError for settings that it has no counterpart of
 */
export function whisperFromSettings(json: unknown): Config<SequenceModel> {
  const values = settings.parse(json);
  const { d_model: modelDims, vocab_size: numClasses, max_target_positions: maxSeqLength } = values;
  const modelTpl = TransformerEncoderDecoder.config({
    modelDims,
    positionEmbTpl: null,
    encoderStemTpl: ConvolutionalStem.config({ inputDims: values.num_mel_bins }),
    encoderPositionEmbTpl: PositionalEmbedding.config(),
    encoderStackedTransformerTpl: stackOf(values, 'encoder'),
    encoderLnTpl: layerNorm(EPSILON),
    decoderPositionEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength }),
    decoderStackedTransformerTpl: stackOf(values, 'decoder'),
    decoderLnTpl: layerNorm(EPSILON),
    softmaxTpl: NClassMajorSharedEmbeddingSoftmax.config({
      ...{ numClasses, hasBias: false, scaleSqrtDepth: values.scale_embedding },
    }),
    paramsInit: Gaussian.config({ scale: values.init_std }),
  });
  return SequenceModel.config({ modelTpl });
}

const halfRules = (half: 'encoder' | 'decoder'): NameRule[] => {
  const [layer, tensor] = [`model/${half}/x_layers_(\\d+)`, `${half}.layers.{}`];
  return [
    ...normRules(`${layer}/layer_norm`, `${tensor}.self_attn_layer_norm`),
    ...projectionRules(`${layer}/self_attention`, `${tensor}.self_attn`, 'out_proj'),
    ...normRules(`${layer}/ff_layer/layer_norm`, `${tensor}.final_layer_norm`),
    ...linearRules(`${layer}/ff_layer/ffn_layer1`, `${tensor}.fc1`),
    ...linearRules(`${layer}/ff_layer/ffn_layer2`, `${tensor}.fc2`),
    ...normRules(`model/${half}_ln`, `${half}.layer_norm`),
  ];
};

const decoderLayer = 'model/decoder/x_layers_(\\d+)';

/** Names of Whisper's weights. */
export const whisperNames: NameRules = {
  rules: [
    ...[0, 1].flatMap((i): NameRule[] => [
      [`model/encoder_stem/convs_${i}/w`, `encoder.conv${i + 1}.weight`, 'o i k -> k i o'],
      [`model/encoder_stem/convs_${i}/b`, `encoder.conv${i + 1}.bias`],
    ]),
    ...halfRules('encoder'),
    ['model/softmax/w', 'decoder.embed_tokens.weight'],
    ['model/decoder_position_emb/emb_var', 'decoder.embed_positions.weight'],
    ...halfRules('decoder'),
    ...normRules(`${decoderLayer}/cross_layer_norm`, 'decoder.layers.{}.encoder_attn_layer_norm'),
    ...projectionRules(`${decoderLayer}/cross_attention`, 'decoder.layers.{}.encoder_attn', 'out_proj'),
  ],
  prefixes: ['model.'],
  buffers: [],
  // Sinusoids.
  kept: ['encoder\\.embed_positions\\.weight'],
  copies: { 'proj_out.weight': 'decoder.embed_tokens.weight' },
};
