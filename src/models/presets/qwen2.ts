/** @file Qwen 2 and 2.5 language models (Qwen Team, 2024), and the settings of windows that Qwen 3 shares. */
import { z } from 'zod';
import type { Config } from '../../hparams/index.js';
import type { TransformerLm } from '../../layers/index.js';
import { checkedLayerTypes, layerTypesOf, setLayerKinds, windowFields } from './layerKinds.js';
import { llamaFields, llamaOf } from './llama.js';

const count = z.int().positive();

/** Fields of a config.json of Qwen 2 and 3; defaults are those of transformers' Qwen2Config. */
export const qwenFields = {
  ...llamaFields,
  ...windowFields,
  vocab_size: count.default(151_936),
  intermediate_size: count.default(22_016),
  num_key_value_heads: count.nullish().default(32),
  max_position_embeddings: count.default(32_768),
  mlp_bias: z.literal(false).default(false),
  use_sliding_window: z.boolean().default(false),
  sliding_window: count.nullish().default(4096),
  max_window_layers: z.int().nonnegative().default(28),
};

/** config.json of model_type qwen2. Queries, keys and values have biases, whatever the settings are. */
export const qwen2Schema = checkedLayerTypes(
  z.object({ ...qwenFields, attention_bias: z.literal(true).default(true) }),
);

/** Gives layers the windows that settings say. */
export function setWindows(
  lm: Config<TransformerLm>,
  values: Pick<
    z.output<z.ZodObject<typeof qwenFields>>,
    'num_hidden_layers' | 'layer_types' | 'use_sliding_window' | 'sliding_window' | 'max_window_layers'
  >,
): void {
  if (!values.use_sliding_window) return;
  const kinds = layerTypesOf(values, (layer) =>
    layer > values.max_window_layers ? 'sliding_attention' : 'full_attention',
  );
  setLayerKinds(lm, kinds, ({ trAttenTpl }, kind) => {
    if (kind === 'sliding_attention') trAttenTpl.windowSize = values.sliding_window ?? null;
  });
}

/** The network of a config.json of Qwen 2. @throws ZodError for settings that it has no counterpart of */
export function qwen2FromSettings(json: unknown): Config<TransformerLm> {
  const values = qwen2Schema.parse(json);
  const lm = llamaOf(values);
  lm.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl.useOutputBias = false;
  setWindows(lm, values);
  return lm;
}
