/** @file OLMo 2 language models (OLMo Team, 2024), and the names of their published weights. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import { RmsNorm, type TransformerLm } from '../../layers/index.js';
import { llamaFields, llamaNames, llamaOf } from './llama.js';
import { headNormRules, LAYER, type NameRules } from './nameRules.js';

const count = z.int().positive();

/** config.json of model_type olmo2; defaults are those of transformers' Olmo2Config. */
const settings = z.object({
  ...llamaFields,
  vocab_size: count.default(50_304),
  rms_norm_eps: z.number().positive().default(1e-5),
  mlp_bias: z.literal(false).default(false),
});

/** The network of a config.json of OLMo 2. @throws ZodError for settings that it has no counterpart of */
export function olmo2FromSettings(json: unknown): Config<TransformerLm> {
  const values = settings.parse(json);
  const lm = llamaOf(values);
  const layer = lm.stackedTransformerTpl.transformerLayerParamsTpl;
  layer.normPolicy = 'post';
  layer.trAttenTpl.lnTpl = RmsNorm.config({ epsilon: values.rms_norm_eps });
  layer.trAttenTpl.normBeforeRotary = true;
  layer.trAttenTpl.normAllHeads = true;
  return lm;
}

/** Names of OLMo 2's weights. */
export const olmo2Names: NameRules = {
  ...llamaNames,
  rules: [
    [`${LAYER}/layer_norm/scale`, 'layers.{}.post_attention_layernorm.weight'],
    [`${LAYER}/ff_layer/layer_norm/scale`, 'layers.{}.post_feedforward_layernorm.weight'],
    ...headNormRules,
    ...llamaNames.rules,
  ],
};
