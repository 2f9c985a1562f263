/** @file Qwen3-Next language models (Qwen Team, 2025), and the names of their published weights. */
import { z } from 'zod';
import { type Config, deepCopyWith } from '../../hparams/index.js';
import { GatedDeltaNet, RmsNorm, ShortConvolution, type TransformerLm } from '../../layers/index.js';
import { checkedLayerTypes, layerTypesOf, setLayerKinds } from './layerKinds.js';
import { llamaFields, llamaNames, llamaOf } from './llama.js';
import { droplessMoe } from './mixtral.js';
import {
  expertRules,
  headNormRules,
  LAYER,
  linearRules,
  type NameRules,
  SLICED_EXPERTS,
} from './nameRules.js';

const count = z.int().positive();

/** config.json of model_type qwen3_next; defaults are those of transformers' Qwen3NextConfig. */
const settings = checkedLayerTypes(
  z.object({
    ...llamaFields,
    vocab_size: count.default(151_936),
    hidden_size: count.default(2048),
    intermediate_size: count.default(5632),
    num_hidden_layers: count.default(48),
    num_attention_heads: count.default(16),
    num_key_value_heads: count.nullish().default(2),
    head_dim: count.default(256),
    max_position_embeddings: count.default(32_768),
    partial_rotary_factor: llamaFields.partial_rotary_factor.default(0.25),
    mlp_bias: z.literal(false).default(false),
    layer_types: z.array(z.enum(['full_attention', 'linear_attention'])).nullish(),
    full_attention_interval: count.default(4),
    linear_conv_kernel_dim: count.default(4),
    linear_key_head_dim: count.default(128),
    linear_value_head_dim: count.default(128),
    linear_num_key_heads: count.default(16),
    linear_num_value_heads: count.default(32),
    decoder_sparse_step: count.default(1),
    mlp_only_layers: z.array(z.int().nonnegative()).nullish(),
    moe_intermediate_size: count.default(512),
    shared_expert_intermediate_size: count.default(512),
    num_experts: count.default(512),
    num_experts_per_tok: z.int().min(2).default(10),
    norm_topk_prob: z.literal(true).default(true),
    output_router_logits: z.literal(false).default(false),
  }),
).refine(({ moe_intermediate_size: each, shared_expert_intermediate_size: shared }) => shared % each === 0, {
  path: ['shared_expert_intermediate_size'],
  error: 'expected a multiple of moe_intermediate_size',
});

type Settings = z.output<typeof settings>;

/** The layers with experts, from 0. */
function moeLayersOf(values: Settings): number[] {
  const { num_hidden_layers, mlp_only_layers, decoder_sparse_step } = values;
  return Array.from({ length: num_hidden_layers }, (_, i) => i).filter(
    (i) => !mlp_only_layers?.includes(i) && (i + 1) % decoder_sparse_step === 0,
  );
}

/**
 * The network of a config.json of Qwen3-Next: gated attention in some layers and gated DeltaNet in the others, zero-centred
 * norms, and experts with a gate for the shared ones.
 *
 * @throws ZodError for settings that it has no counterpart of
 */
export function qwen3NextFromSettings(json: unknown): Config<TransformerLm> {
  const values = settings.parse(json);
  const lm = llamaOf(values);
  const norm = () => RmsNorm.config({ epsilon: values.rms_norm_eps, directScale: false });
  lm.finalLnTpl = norm();
  const stack = lm.stackedTransformerTpl;
  const layer = stack.transformerLayerParamsTpl;
  layer.lnTpl = norm();
  layer.trFflayerTpl.lnTpl = norm();
  Object.assign(layer.trAttenTpl, { lnTpl: norm(), normBeforeRotary: true, useOutputGate: true });
  stack.moeLayers = moeLayersOf(values);
  stack.numExperts = values.num_experts;
  stack.gatingFunc = 'topk';
  stack.moeLayerTpl = deepCopyWith(droplessMoe(values.rms_norm_eps, values.num_experts_per_tok), {
    lnTpl: norm(),
    hiddenDims: values.moe_intermediate_size,
    numSharedExperts: values.shared_expert_intermediate_size / values.moe_intermediate_size,
    useSharedExpertGate: true,
  });
  const kinds = layerTypesOf(values, (layer) =>
    layer % values.full_attention_interval === 0 ? 'full_attention' : 'linear_attention',
  );
  setLayerKinds(lm, kinds, (each, kind) => {
    if (kind === 'linear_attention') each.mixerTpl = deltaNetOf(values);
  });
  return lm;
}

const deltaNetOf = (values: Settings): Config<GatedDeltaNet> =>
  GatedDeltaNet.config({
    numKeyHeads: values.linear_num_key_heads,
    numValueHeads: values.linear_num_value_heads,
    keyHeadDim: values.linear_key_head_dim,
    valueHeadDim: values.linear_value_head_dim,
    convTpl: ShortConvolution.config({ bias: false, kernelSize: values.linear_conv_kernel_dim }),
    normTpl: RmsNorm.config({ epsilon: values.rms_norm_eps }),
  });

const attention = `${LAYER}/self_attention`;
const mixer = `${LAYER}/mixer`;
const ofAttention = 'layers.{}.self_attn';
const ofMixer = 'layers.{}.linear_attn';
const ofShared = 'layers.{}.mlp.shared_expert';

/** The head of multi-token prediction. */
const PREDICTION_HEAD = 'mtp\\..*';

/** Names of Qwen3-Next's weights; a head's query and output gate are next to one another in one tensor. */
export const qwen3NextNames: NameRules = {
  ...llamaNames,
  rules: [
    [`${attention}/query/w`, `${ofAttention}.q_proj.weight`, '(n 0/2 h) d -> d n h'],
    [`${attention}/query/b`, `${ofAttention}.q_proj.bias`, '(n 0/2 h) -> n h'],
    [`${attention}/gate/w`, `${ofAttention}.q_proj.weight`, '(n 1/2 h) d -> d n h'],
    [`${attention}/gate/b`, `${ofAttention}.q_proj.bias`, '(n 1/2 h) -> n h'],
    ...llamaNames.rules,
    ...headNormRules,
    ...['in_proj_qkvz', 'in_proj_ba', 'out_proj'].map(
      (part) => [`${mixer}/${part}/w`, `${ofMixer}.${part}.weight`, 'o i -> i o'] as const,
    ),
    [`${mixer}/conv1d/w`, `${ofMixer}.conv1d.weight`, 'c 0/1 k -> k c'],
    [`${mixer}/(dt_bias|A_log)`, 'layers.{}.linear_attn.{}'],
    [`${mixer}/norm/scale`, `${ofMixer}.norm.weight`],
    ...expertRules('layers.{}.mlp', ['gate_proj', 'up_proj', 'down_proj']),
    [`${LAYER}/ff_layer/shared_expert_gate`, `${ofShared}_gate.weight`, 'o i -> i o'],
    ...linearRules(`${LAYER}/ff_layer/ffn_layer1_gate`, `${ofShared}.gate_proj`),
    ...linearRules(`${LAYER}/ff_layer/ffn_layer1`, `${ofShared}.up_proj`),
    ...linearRules(`${LAYER}/ff_layer/ffn_layer2`, `${ofShared}.down_proj`),
  ],
  sliced: SLICED_EXPERTS,
  buffers: [...llamaNames.buffers, PREDICTION_HEAD],
  predictionHeads: [PREDICTION_HEAD],
};
