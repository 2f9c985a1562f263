/** @file A LoRA adapter as PEFT writes it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeSafetensors } from '../../../src/checkpoints/index.js';
import { temporaryDirectory } from '../../command.js';

/** An adapter of rank 2 for queries and values of both layers of the tiny Llama. */
export function adapterFolder(settings: object = {}): string {
  const folder = temporaryDirectory();
  const tensors = [0, 1].flatMap((layer) =>
    ['q_proj', 'v_proj'].flatMap((module) => {
      const outputs = module === 'q_proj' ? 16 : 8;
      const at = `base_model.model.model.layers.${layer}.self_attn.${module}`;
      const made = (shape: number[], phase: number) => ({
        ...{ dtype: 'float32' as const, shape },
        data: Float32Array.from({ length: shape[0]! * shape[1]! }, (_, i) => Math.sin(i + phase + layer)),
      });
      return [
        [`${at}.lora_A.weight`, made([2, 16], 1)],
        [`${at}.lora_B.weight`, made([outputs, 2], 2)],
      ] as const;
    }),
  );
  writeFileSync(join(folder, 'adapter_model.safetensors'), encodeSafetensors(Object.fromEntries(tensors)));
  writeFileSync(
    join(folder, 'adapter_config.json'),
    JSON.stringify({
      peft_type: 'LORA',
      r: 2,
      lora_alpha: 6,
      target_modules: ['q_proj', 'v_proj'],
      ...settings,
    }),
  );
  return folder;
}
