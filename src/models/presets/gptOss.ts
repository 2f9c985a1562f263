/** @file gpt-oss language models (OpenAI, 2025), and the names of their published weights. */
import { z } from 'zod';
import { type Config, deepCopyWith } from '../../hparams/index.js';
import { ClampedLinear, ClampedSwish, type TransformerLm } from '../../layers/index.js';
import { checkedLayerTypes, layerTypesOf, setLayerKinds, windowFields } from './layerKinds.js';
import { llamaFields, llamaNames, llamaOf } from './llama.js';
import { droplessMoe } from './mixtral.js';
import { LAYER, type NameRule, type NameRules } from './nameRules.js';
import { rotations } from './rotarySettings.js';

const count = z.int().positive();
const positive = z.number().positive();

/** config.json of model_type gpt_oss; defaults are those of transformers' GptOssConfig. */
const settings = checkedLayerTypes(
  z.object({
    ...llamaFields,
    ...windowFields,
    vocab_size: count.default(201_088),
    hidden_size: count.default(2880),
    intermediate_size: count.default(2880),
    num_hidden_layers: count.default(36),
    num_attention_heads: count.default(64),
    num_key_value_heads: count.nullish().default(8),
    head_dim: count.default(64),
    rms_norm_eps: positive.default(1e-5),
    max_position_embeddings: count.default(131_072),
    attention_bias: z.boolean().default(true),
    mlp_bias: z.literal(false).default(false),
    sliding_window: count.nullish().default(128),
    num_local_experts: count.default(128),
    num_experts_per_tok: z.int().min(2).default(4),
    // The published config.json says these twice; the rotations have the other's length.
    experts_per_token: count.nullish(),
    initial_context_length: count.nullish(),
    swiglu_alpha: positive.default(1.702),
    swiglu_limit: positive.default(7),
    output_router_logits: z.literal(false).default(false),
  }),
).refine(({ experts_per_token: k, num_experts_per_tok }) => k == null || k === num_experts_per_tok, {
  ...{ path: ['experts_per_token'], error: 'expected num_experts_per_tok' },
});

/** Rotations of a config.json that has none. */
const yarn = rotations.parse({
  ...{ rope_type: 'yarn', factor: 32, beta_fast: 32, beta_slow: 1, truncate: false },
  original_max_position_embeddings: 4096,
});

/**
 * The network of a config.json of gpt-oss: sinks in attention, windows in every other layer, and experts with biases in each.
 *
 * @throws ZodError for settings that it has no counterpart of
 */
export function gptOssFromSettings(json: unknown): Config<TransformerLm> {
  const values = settings.parse(json);
  const lm = llamaOf(
    { ...values, rope_parameters: values.rope_parameters ?? values.rope_scaling ?? yarn },
    150_000,
  );
  const stack = lm.stackedTransformerTpl;
  stack.transformerLayerParamsTpl.trAttenTpl.useSinks = true;
  stack.moeLayers = Array.from({ length: values.num_hidden_layers }, (_, i) => i);
  stack.numExperts = values.num_local_experts;
  stack.gatingFunc = 'topk';
  stack.moeLayerTpl = deepCopyWith(droplessMoe(values.rms_norm_eps, values.num_experts_per_tok), {
    hasExpertBias: true,
    hasRouterBias: true,
    activationTpl: ClampedSwish.config({ alpha: values.swiglu_alpha, limit: values.swiglu_limit }),
    linearPathActivationTpl: ClampedLinear.config({ limit: values.swiglu_limit }),
  });
  const kinds = layerTypesOf(values, (layer) => (layer % 2 === 1 ? 'sliding_attention' : 'full_attention'));
  setLayerKinds(lm, kinds, ({ trAttenTpl }, kind) => {
    if (kind === 'sliding_attention') trAttenTpl.windowSize = values.sliding_window ?? null;
  });
  return lm;
}

const ofExperts = 'layers.{}.mlp.experts';

/** The rules of a matrix of all experts, packed or not, and of its biases; `part` of its columns, where another has the rest. */
const expertRules = (variable: string, tensor: string, part?: string): NameRule[] => {
  const columns = part === undefined ? 'o' : `(o ${part})`;
  const ofVariable = `${LAYER}/ff_layer/${variable}`;
  return [
    [ofVariable, `${ofExperts}.${tensor}`, `e i ${columns} -> e i o`],
    [ofVariable, `${ofExperts}.${tensor}_blocks`, `e ${columns} i -> e i o`],
    [`${ofVariable}_bias`, `${ofExperts}.${tensor}_bias`, `e ${columns} -> e o`],
  ];
};

/** Names of gpt-oss's weights; columns of gates and of what they multiply alternate. Packed matrices are transposed. */
export const gptOssNames: NameRules = {
  ...llamaNames,
  rules: [
    ...llamaNames.rules,
    [`${LAYER}/self_attention/sinks`, 'layers.{}.self_attn.sinks'],
    [`${LAYER}/ff_layer/gate`, 'layers.{}.mlp.router.weight', 'e d -> d e'],
    [`${LAYER}/ff_layer/gate_bias`, 'layers.{}.mlp.router.bias'],
    ...expertRules('wi_gate_0', 'gate_up_proj', '0/2'),
    ...expertRules('wi_0', 'gate_up_proj', '1/2'),
    ...expertRules('wo_0', 'down_proj'),
  ],
};
