/** @file Mixtral language models (Jiang et al., 2024), and the names of their published weights. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import { RmsNorm, SiLU, TransformerFeedForwardMoe, type TransformerLm } from '../../layers/index.js';
import { llamaFields, llamaNames, llamaOf } from './llama.js';
import { expertRules, type NameRules, SLICED_EXPERTS } from './nameRules.js';

const count = z.int().positive();

/** config.json of model_type mixtral; defaults are those of transformers' MixtralConfig. */
export const mixtralSchema = z.object({
  ...llamaFields,
  intermediate_size: count.default(14_336),
  num_key_value_heads: count.nullish().default(8),
  rms_norm_eps: z.number().positive().default(1e-5),
  max_position_embeddings: count.default(131_072),
  attention_bias: z.literal(false).default(false),
  mlp_bias: z.literal(false).default(false),
  sliding_window: count.nullish(),
  num_local_experts: count.default(8),
  num_experts_per_tok: z.int().min(2).default(2),
  router_jitter_noise: z.literal(0).default(0),
  output_router_logits: z.literal(false).default(false),
});

/** The network of a config.json of Mixtral. @throws ZodError for settings that it has no counterpart of */
export function mixtralFromSettings(json: unknown): Config<TransformerLm> {
  const values = mixtralSchema.parse(json);
  const lm = llamaOf(values, 1e6);
  const stack = lm.stackedTransformerTpl;
  stack.transformerLayerParamsTpl.trAttenTpl.windowSize = values.sliding_window ?? null;
  stack.moeLayers = Array.from({ length: values.num_hidden_layers }, (_, i) => i);
  stack.numExperts = values.num_local_experts;
  stack.gatingFunc = 'topk';
  stack.moeLayerTpl = droplessMoe(values.rms_norm_eps, values.num_experts_per_tok);
  return lm;
}

/** Gated experts without a capacity, so that no token is dropped, and without a loss for an even load. */
export const droplessMoe = (
  normEpsilon: number,
  numExpertsPerToken: number,
): Config<TransformerFeedForwardMoe> =>
  TransformerFeedForwardMoe.config({
    lnTpl: RmsNorm.config({ epsilon: normEpsilon }),
    activationTpl: SiLU.config(),
    useGatedActivation: true,
    internalGshardVarianceScalingFanInInit: false,
    unadjustedExpertCapacityFactor: 0,
    moeLoadBalanceLossWeight: 0,
    numExpertsPerToken,
  });

/** Names of Mixtral's weights. */
export const mixtralNames: NameRules = {
  ...llamaNames,
  rules: [...llamaNames.rules, ...expertRules('layers.{}.block_sparse_moe', ['w1', 'w3', 'w2'])],
  sliced: SLICED_EXPERTS,
};
