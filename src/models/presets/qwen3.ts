/** @file Qwen 3 language models (Qwen Team, 2025), and the names of their published weights. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import { RmsNorm, type TransformerLm } from '../../layers/index.js';
import { checkedLayerTypes, layerTypesOf, setLayerKinds, windowFields } from './layerKinds.js';
import { llamaFields, llamaNames, llamaOf } from './llama.js';
import { headNormRules, type NameRules } from './nameRules.js';

const count = z.int().positive();

/** config.json of model_type qwen3; defaults are those of transformers' Qwen3Config. */
export const qwen3Schema = checkedLayerTypes(
  z.object({
    ...llamaFields,
    ...windowFields,
    vocab_size: count.default(151_936),
    intermediate_size: count.default(22_016),
    num_key_value_heads: count.nullish().default(32),
    head_dim: count.default(128),
    max_position_embeddings: count.default(32_768),
    mlp_bias: z.literal(false).default(false),
    use_sliding_window: z.boolean().default(false),
    sliding_window: count.nullish().default(4096),
    max_window_layers: z.int().nonnegative().default(28),
  }),
);

/** The network of a config.json of Qwen 3. @throws ZodError for settings that it has no counterpart of */
export function qwen3FromSettings(json: unknown): Config<TransformerLm> {
  const values = qwen3Schema.parse(json);
  const lm = llamaOf(values);
  const attention = lm.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl;
  attention.lnTpl = RmsNorm.config({ epsilon: values.rms_norm_eps });
  attention.normBeforeRotary = true;
  if (!values.use_sliding_window) return lm;
  const kinds = layerTypesOf(values, (layer) =>
    layer > values.max_window_layers ? 'sliding_attention' : 'full_attention',
  );
  setLayerKinds(lm, kinds, ({ trAttenTpl }, kind) => {
    if (kind === 'sliding_attention') trAttenTpl.windowSize = values.sliding_window ?? null;
  });
  return lm;
}

/** Names of Qwen 3's weights. */
export const qwen3Names: NameRules = { ...llamaNames, rules: [...llamaNames.rules, ...headNormRules] };
