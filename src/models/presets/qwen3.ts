/** @file Qwen 3 language models (Qwen Team, 2025), and the names of their published weights. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import { RmsNorm, type TransformerLm } from '../../layers/index.js';
import { checkedLayerTypes } from './layerKinds.js';
import { llamaNames, llamaOf } from './llama.js';
import { headNormRules, type NameRules } from './nameRules.js';
import { qwenFields, setWindows } from './qwen2.js';

/** config.json of model_type qwen3; defaults are those of transformers' Qwen3Config. */
export const qwen3Schema = checkedLayerTypes(
  z.object({ ...qwenFields, head_dim: z.int().positive().default(128) }),
);

/** The network of a config.json of Qwen 3. @throws ZodError for settings that it has no counterpart of */
export function qwen3FromSettings(json: unknown): Config<TransformerLm> {
  const values = qwen3Schema.parse(json);
  const lm = llamaOf(values);
  const attention = lm.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl;
  attention.lnTpl = RmsNorm.config({ epsilon: values.rms_norm_eps });
  attention.normBeforeRotary = true;
  setWindows(lm, values);
  return lm;
}

/** Names of Qwen 3's weights. */
export const qwen3Names: NameRules = { ...llamaNames, rules: [...llamaNames.rules, ...headNormRules] };
