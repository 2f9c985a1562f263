/** @file adapter_config.json of PEFT's LoRA adapters. */

import { join } from 'node:path';
import { z } from 'zod';
import { readJsonFile } from '../../files/index.js';
import { ConfigError } from '../../hparams/index.js';

/** Name of the file with an adapter's settings. */
export const ADAPTER_CONFIG = 'adapter_config.json';
/** Name of the file with its weights. */
export const ADAPTER_WEIGHTS = 'adapter_model.safetensors';

/** A feature that is off. */
const absent = z
  .unknown()
  .refine((value) => !value || (typeof value === 'object' && Object.keys(value).length === 0), {
    error: 'expected it to be off',
  })
  .optional();

/** The fields that change numbers; others are for training, or for finding files. */
const schema = z.object({
  peft_type: z.literal('LORA'),
  r: z.int().positive(),
  lora_alpha: z.number().positive().default(8),
  use_rslora: z.boolean().nullish(),
  bias: z.literal('none').default('none'),
  use_dora: absent,
  use_qalora: absent,
  rank_pattern: absent,
  alpha_pattern: absent,
  modules_to_save: absent,
  layer_replication: absent,
  lora_bias: absent,
  trainable_token_indices: absent,
});

/** Rank and α of an adapter. */
export interface AdapterSettings {
  readonly rank: number;
  readonly alpha: number;
}

/** The settings of an adapter's folder. @throws ConfigError where there are none, and for those without a counterpart, all at once */
export function adapterSettings(folder: string): AdapterSettings {
  const file = join(folder, ADAPTER_CONFIG);
  let json: unknown;
  try {
    json = readJsonFile(file, z.unknown());
  } catch (cause) {
    throw new ConfigError(`${file}: expected the settings of an adapter: ${(cause as Error).message}`, {
      cause,
    });
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    const lines = parsed.error.issues.map(({ path, message }) => {
      const found = (json as Record<PropertyKey, unknown> | null)?.[path[0]!];
      return `  ${path.join('.')} is ${JSON.stringify(found)}: ${message}`;
    });
    throw new ConfigError(`${file}: the adapter has no counterpart here:\n${lines.join('\n')}`);
  }
  const { r, lora_alpha, use_rslora } = parsed.data;
  return { rank: r, alpha: use_rslora ? lora_alpha * Math.sqrt(r) : lora_alpha };
}

/** Text of the settings of an adapter. @param modules last parts of the names of the modules that it changes */
export const adapterText = (
  { rank, alpha }: AdapterSettings,
  modules: readonly string[],
  base: string,
): string =>
  `${JSON.stringify(
    {
      ...{ peft_type: 'LORA', task_type: 'CAUSAL_LM', base_model_name_or_path: base },
      ...{ r: rank, lora_alpha: alpha, target_modules: modules, bias: 'none', lora_dropout: 0 },
      ...{ fan_in_fan_out: false, inference_mode: true },
    },
    null,
    2,
  )}\n`;
