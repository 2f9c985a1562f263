/** @file Gemma 2 and 3 language models (Gemma Team, 2024 and 2025), and the names of their published weights. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import {
  GELU,
  NClassMajorSharedEmbeddingSoftmax,
  RmsNorm,
  type RotaryPositionalEmbedding,
  type TransformerLm,
} from '../../layers/index.js';
import { checkedLayerTypes, layerTypesOf, setLayerKinds, windowFields } from './layerKinds.js';
import { llamaFields, llamaNames, llamaOf } from './llama.js';
import { headNormRules, LAYER, type NameRules } from './nameRules.js';
import { rotaryOf, rotations } from './rotarySettings.js';

const count = z.int().positive();
const cap = z.number().positive().nullish();
const { hidden_act: _, ...commonFields } = llamaFields;

const gemmaFields = {
  ...commonFields,
  ...windowFields,
  vocab_size: count.default(256_000),
  hidden_size: count.default(2304),
  intermediate_size: count.default(9216),
  num_hidden_layers: count.default(26),
  num_attention_heads: count.default(8),
  num_key_value_heads: count.nullish().default(4),
  head_dim: count.default(256),
  hidden_activation: z.literal('gelu_pytorch_tanh').default('gelu_pytorch_tanh'),
  max_position_embeddings: count.default(8192),
  mlp_bias: z.literal(false).default(false),
  tie_word_embeddings: z.literal(true).default(true),
  query_pre_attn_scalar: z.number().positive().default(256),
  sliding_window: count.default(4096),
  final_logit_softcapping: cap,
  attn_logit_softcapping: cap,
  use_bidirectional_attention: z.literal(false).nullish(),
};

type GemmaSettings = Omit<z.output<z.ZodObject<typeof gemmaFields>>, 'rope_parameters'>;

/** Settings whose queries are scaled in a way that attention knows. */
const checked = <T extends GemmaSettings>(settings: z.ZodType<T>): z.ZodType<T> =>
  checkedLayerTypes(settings).refine((values) => byDimPerHead(values) || byModelDims(values), {
    path: ['query_pre_attn_scalar'],
    error: 'expected head_dim, or hidden_size / num_attention_heads',
  });

const byDimPerHead = (values: GemmaSettings): boolean => values.query_pre_attn_scalar === values.head_dim;

const byModelDims = ({ query_pre_attn_scalar, hidden_size, num_attention_heads }: GemmaSettings): boolean =>
  query_pre_attn_scalar === Math.floor(hidden_size / num_attention_heads);

/** The network of Gemma 2 and 3: norms before and behind each branch, GELU, scaled embeddings and windows in some layers. */
function gemmaOf(
  values: GemmaSettings,
  kinds: readonly ('full_attention' | 'sliding_attention')[],
  rotary: Readonly<Record<'full_attention' | 'sliding_attention', () => Config<RotaryPositionalEmbedding>>>,
  normsHeads: boolean,
): Config<TransformerLm> {
  const lm = llamaOf({ ...values, rope_parameters: null });
  const norm = () => RmsNorm.config({ epsilon: values.rms_norm_eps, directScale: false });
  lm.finalLnTpl = norm();
  lm.softmaxTpl = NClassMajorSharedEmbeddingSoftmax.config({
    hasBias: false,
    scaleSqrtDepth: true,
    softCapLogits: values.final_logit_softcapping ?? 0,
  });
  const layer = lm.stackedTransformerTpl.transformerLayerParamsTpl;
  layer.normPolicy = 'primer_hybrid';
  layer.lnTpl = norm();
  layer.trFflayerTpl.lnTpl = norm();
  layer.trFflayerTpl.activationTpl = GELU.config({ approximate: true });
  layer.trAttenTpl.scaleQueryByDimPerHead = byDimPerHead(values);
  layer.trAttenTpl.attenLogitCap = values.attn_logit_softcapping ?? 0;
  if (normsHeads) Object.assign(layer.trAttenTpl, { lnTpl: norm(), normBeforeRotary: true });
  setLayerKinds(lm, kinds, ({ trAttenTpl }, kind) => {
    trAttenTpl.rotaryPositionEmbTpl = rotary[kind]();
    trAttenTpl.windowSize = kind === 'sliding_attention' ? values.sliding_window : null;
  });
  return lm;
}

/** config.json of model_type gemma2; defaults are those of transformers' Gemma2Config. */
const settings2 = checked(
  z.object({
    ...gemmaFields,
    final_logit_softcapping: cap.default(30),
    attn_logit_softcapping: cap.default(50),
  }),
);

/** The network of a config.json of Gemma 2. @throws ZodError for settings that it has no counterpart of */
export function gemma2FromSettings(json: unknown): Config<TransformerLm> {
  const values = settings2.parse(json);
  const kinds = layerTypesOf(values, (layer) => (layer % 2 === 1 ? 'sliding_attention' : 'full_attention'));
  const rotary = () => rotaryOf(values);
  return gemmaOf(values, kinds, { full_attention: rotary, sliding_attention: rotary }, false);
}

/** config.json of model_type gemma3_text; defaults are those of transformers' Gemma3TextConfig. */
const settings3 = checked(
  z.object({
    ...gemmaFields,
    vocab_size: count.default(262_208),
    max_position_embeddings: count.default(131_072),
    sliding_window_pattern: count.default(6),
    rope_parameters: z
      .strictObject({ full_attention: rotations.nullish(), sliding_attention: rotations.nullish() })
      .nullish(),
    rope_local_base_freq: z.number().positive().default(10_000),
  }),
);

/** The network of a config.json of Gemma 3's text models. @throws ZodError for settings that it has no counterpart of */
export function gemma3FromSettings(json: unknown): Config<TransformerLm> {
  const values = settings3.parse(json);
  const { rope_parameters: given, rope_local_base_freq, sliding_window_pattern, ...others } = values;
  const kinds = layerTypesOf(values, (layer) =>
    layer % sliding_window_pattern === 0 ? 'full_attention' : 'sliding_attention',
  );
  const rotary = {
    full_attention: () => rotaryOf({ ...others, rope_parameters: given?.full_attention }, 1e6),
    sliding_attention: () =>
      rotaryOf(
        {
          rope_parameters: given?.sliding_attention,
          max_position_embeddings: others.max_position_embeddings,
        },
        rope_local_base_freq,
      ),
  };
  return gemmaOf(others, kinds, rotary, true);
}

/** Names of the weights of Gemma 2 and 3. */
export const gemmaNames: NameRules = {
  ...llamaNames,
  rules: [
    ...llamaNames.rules,
    ...headNormRules,
    [`${LAYER}/pre_layer_norm/scale`, 'layers.{}.input_layernorm.weight'],
    [`${LAYER}/post_layer_norm/scale`, 'layers.{}.post_attention_layernorm.weight'],
    [`${LAYER}/ff_layer/pre_layer_norm/scale`, 'layers.{}.pre_feedforward_layernorm.weight'],
    [`${LAYER}/ff_layer/post_layer_norm/scale`, 'layers.{}.post_feedforward_layernorm.weight'],
  ],
};
