/** @file LoRA adapters as PEFT writes them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeSafetensors, WeightFiles } from '../../../src/checkpoints/index.js';
import { temporaryDirectory } from '../../command.js';

/** The linears of a decoder's layer, by the names of most families. */
export const LINEARS = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'] as const;

/**
 * An adapter of rank 2 for linears of all layers of a published model.
 *
 * @param base the model's folder.
 * @param modules last parts of the linears' names.
 */
export function adapterFolder(
  base: string,
  settings: object = {},
  modules: readonly string[] = ['q_proj', 'v_proj'],
): string {
  const folder = temporaryDirectory();
  const isAdapted = (name: string) => modules.some((module) => name.endsWith(`.${module}.weight`));
  const source = WeightFiles.open(base);
  const shapes = source.names.filter(isAdapted).map((name) => [name, source.shapeOf(name)!] as const);
  source.close();
  const tensors = shapes.flatMap(([name, shape], number) => {
    const [outputs, inputs] = shape as [number, number];
    const at = `base_model.model.${name.slice(0, -'.weight'.length)}`;
    const made = (shape: [number, number], phase: number) => ({
      ...{ dtype: 'float32' as const, shape },
      data: Float32Array.from({ length: shape[0] * shape[1] }, (_, i) => 0.1 * Math.sin(i + phase + number)),
    });
    return [
      [`${at}.lora_A.weight`, made([2, inputs], 1)],
      [`${at}.lora_B.weight`, made([outputs, 2], 2)],
    ] as const;
  });
  writeFileSync(join(folder, 'adapter_model.safetensors'), encodeSafetensors(Object.fromEntries(tensors)));
  writeFileSync(
    join(folder, 'adapter_config.json'),
    JSON.stringify({ peft_type: 'LORA', r: 2, lora_alpha: 6, target_modules: modules, ...settings }),
  );
  return folder;
}
