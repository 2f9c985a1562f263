/** @file Language models of DeepSeek-V3's shape (DeepSeek-AI, 2024), and the names of their published weights. */
import { z } from 'zod';
import { type Config, deepCopyWith } from '../../hparams/index.js';
import { LatentAttention, RmsNorm, type TransformerLm } from '../../layers/index.js';
import { llamaFields, llamaNames, llamaOf } from './llama.js';
import { droplessMoe } from './mixtral.js';
import { expertRules, LAYER, linearRules, type NameRules, SLICED_EXPERTS } from './nameRules.js';
import { rotaryOf, rotationsOf } from './rotarySettings.js';

const count = z.int().positive();

/** config.json of model_type deepseek_v3; defaults are those of transformers' DeepseekV3Config. */
const settings = z.object({
  ...llamaFields,
  vocab_size: count.default(129_280),
  hidden_size: count.default(7168),
  intermediate_size: count.default(18_432),
  num_hidden_layers: count.default(61),
  num_attention_heads: count.default(128),
  num_key_value_heads: z.unknown().transform(() => null),
  head_dim: z.unknown().transform(() => null),
  max_position_embeddings: count.default(4096),
  attention_bias: z.literal(false).default(false),
  mlp_bias: z.literal(false).default(false),
  moe_intermediate_size: count.default(2048),
  n_shared_experts: count.default(1),
  n_routed_experts: count.default(256),
  num_experts_per_tok: z.int().min(2).default(8),
  routed_scaling_factor: z.number().positive().default(2.5),
  n_group: count.default(8),
  topk_group: count.default(4),
  scoring_func: z.literal('sigmoid').default('sigmoid'),
  topk_method: z.literal('noaux_tc').default('noaux_tc'),
  moe_layer_freq: z.literal(1).default(1),
  norm_topk_prob: z.literal(true).default(true),
  output_router_logits: z.literal(false).default(false),
  first_k_dense_replace: z.int().nonnegative().default(3),
  kv_lora_rank: count.default(512),
  q_lora_rank: count.nullable().default(1536),
  qk_nope_head_dim: count.default(128),
  qk_rope_head_dim: count.default(64),
  v_head_dim: count.default(128),
  rope_interleave: z.boolean().default(true),
});

type Settings = z.output<typeof settings>;

/** Factor of the logits: YaRN's of the amplitudes, which count twice, is in it. */
function logitScale(values: Settings): number {
  const { kind, factor, mscale_all_dim } = rotationsOf(values);
  const stretch = kind === 'default' ? 1 : Math.max(factor, 1);
  const amplitude = 0.1 * (mscale_all_dim ?? 0) * Math.log(stretch) + 1;
  return amplitude ** 2 / Math.sqrt(values.qk_nope_head_dim + values.qk_rope_head_dim);
}

/** The network of a config.json of DeepSeek-V3. @throws ZodError for settings that it has no counterpart of */
export function deepseekV3FromSettings(json: unknown): Config<TransformerLm> {
  const values = settings.parse(json);
  const lm = llamaOf(values);
  const stack = lm.stackedTransformerTpl;
  stack.transformerLayerParamsTpl.mixerTpl = LatentAttention.config({
    numHeads: values.num_attention_heads,
    qLoraRank: values.q_lora_rank,
    kvLoraRank: values.kv_lora_rank,
    qkNopeHeadDim: values.qk_nope_head_dim,
    qkRopeHeadDim: values.qk_rope_head_dim,
    vHeadDim: values.v_head_dim,
    logitScale: logitScale(values),
    attenDropoutProb: values.attention_dropout,
    lnTpl: RmsNorm.config(),
    rotaryPositionEmbTpl: deepCopyWith(rotaryOf(values), {
      pairs: values.rope_interleave ? 'interleaved' : 'halves',
    }),
  });
  const { num_hidden_layers, first_k_dense_replace: dense } = values;
  stack.moeLayers = Array.from({ length: Math.max(num_hidden_layers - dense, 0) }, (_, i) => dense + i);
  stack.numExperts = values.n_routed_experts;
  stack.gatingFunc = 'topk';
  stack.moeLayerTpl = deepCopyWith(droplessMoe(values.rms_norm_eps, values.num_experts_per_tok), {
    hiddenDims: values.moe_intermediate_size,
    numExpertGroups: values.n_group,
    numExpertGroupsPerToken: values.topk_group,
    numSharedExperts: values.n_shared_experts,
    routerScores: 'sigmoid',
    routedScalingFactor: values.routed_scaling_factor,
    biasUpdateRate: 0.001,
  });
  return lm;
}

/** The head of multi-token prediction, behind the 61 layers of all published ones. */
const PREDICTION_HEAD = 'layers\\.61\\..*';

const mixer = `${LAYER}/mixer`;
const ofAttention = 'layers.{}.self_attn';

/** Names of the weights of DeepSeek-V3. */
export const deepseekV3Names: NameRules = {
  ...llamaNames,
  rules: [
    ...llamaNames.rules,
    ...['q_proj', 'q_b_proj', 'kv_b_proj'].map(
      (part) => [`${mixer}/${part}/w`, `${ofAttention}.${part}.weight`, '(n h) d -> d n h'] as const,
    ),
    [`${mixer}/o_proj/w`, `${ofAttention}.o_proj.weight`, 'd (n h) -> d n h'],
    [`${mixer}/q_a_proj/w`, `${ofAttention}.q_a_proj.weight`, 'o i -> i o'],
    [`${mixer}/kv_a_proj_with_mqa/w`, `${ofAttention}.kv_a_proj_with_mqa.weight`, 'o i -> i o'],
    [`${mixer}/q_a_layernorm/scale`, `${ofAttention}.q_a_layernorm.weight`],
    [`${mixer}/kv_a_layernorm/scale`, `${ofAttention}.kv_a_layernorm.weight`],
    ...expertRules('layers.{}.mlp', ['gate_proj', 'up_proj', 'down_proj']),
    [`${LAYER}/ff_layer/expert_bias`, 'layers.{}.mlp.gate.e_score_correction_bias'],
    ...linearRules(`${LAYER}/ff_layer/ffn_layer1_gate`, 'layers.{}.mlp.shared_experts.gate_proj'),
    ...linearRules(`${LAYER}/ff_layer/ffn_layer1`, 'layers.{}.mlp.shared_experts.up_proj'),
    ...linearRules(`${LAYER}/ff_layer/ffn_layer2`, 'layers.{}.mlp.shared_experts.down_proj'),
  ],
  sliced: SLICED_EXPERTS,
  buffers: [...llamaNames.buffers, PREDICTION_HEAD],
  predictionHeads: [PREDICTION_HEAD],
};
