/** @file Published networks from packed weights: the variables that unpacked ones give. */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SafetensorsFile } from '../../../src/checkpoints/index.js';
import { pretrainedLm } from '../../../src/models/index.js';
import { type NamedTensor, writeSafetensors } from '../../checkpoints/writeSafetensors.js';
import { temporaryDirectory } from '../../command.js';
import { loaded } from '../../programs/loadedModel.js';

/** All depths are the same, so that no shape tells a matrix from its transpose. */
const D = 32;
const EXPERTS = 2;

const settings = {
  ...{ model_type: 'gpt_oss', vocab_size: D, hidden_size: D, intermediate_size: D, num_hidden_layers: 1 },
  ...{ num_attention_heads: 1, num_key_value_heads: 1, head_dim: D, num_local_experts: EXPERTS },
  ...{ num_experts_per_tok: 2, experts_per_token: 2, initial_context_length: 4096 },
  quantization_config: { quant_method: 'mxfp4', modules_to_not_convert: ['model.layers.*.self_attn'] },
};

const sines = (name: string, shape: readonly number[]): NamedTensor => ({
  ...{ name, dtype: 'F32', shape },
  data: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i + name.length)),
});

/** Bytes of a matrix of experts [..., outputs, 1, 16], and their scales; and its elements in their place, inputs first. */
function expertsOf(name: string, outputs: number): Readonly<Record<'packed' | 'plain', NamedTensor[]>> {
  const bytes = Uint8Array.from({ length: (EXPERTS * outputs * D) / 2 }, (_, i) => i * 37 + name.length);
  const scales = Uint8Array.from({ length: EXPERTS * outputs }, (_, i) => 120 + (i % 5));
  const magnitudes = [0, 0.5, 1, 1.5, 2, 3, 4, 6];
  const elements = new Float32Array(EXPERTS * D * outputs);
  for (let e = 0; e < EXPERTS; e++)
    for (let output = 0; output < outputs; output++)
      for (let input = 0; input < D; input++) {
        const row = e * outputs + output;
        const byte = bytes[row * 16 + Math.floor(input / 2)]!;
        const code = input % 2 === 0 ? byte % 16 : Math.floor(byte / 16);
        const magnitude = magnitudes[code % 8]! * 2 ** (scales[row]! - 127);
        elements[(e * D + input) * outputs + output] = code < 8 ? magnitude : -magnitude;
      }
  return {
    packed: [
      { name: `${name}_blocks`, dtype: 'U8', shape: [EXPERTS, outputs, 1, 16], data: bytes },
      { name: `${name}_scales`, dtype: 'U8', shape: [EXPERTS, outputs, 1], data: scales },
    ],
    plain: [{ name, dtype: 'F32', shape: [EXPERTS, D, outputs], data: elements }],
  };
}

test('experts of gpt-oss in MXFP4', () => {
  const layer = 'model.layers.0';
  const attention = ['q', 'k', 'v', 'o'].map((part) => `${layer}.self_attn.${part}_proj`);
  const vectors = ['model.norm.weight', ...attention.map((name) => `${name}.bias`)];
  const norms = ['input_layernorm', 'post_attention_layernorm'].map((name) => `${layer}.${name}.weight`);
  const matrices = [
    'model.embed_tokens.weight',
    'lm_head.weight',
    ...attention.map((name) => `${name}.weight`),
  ];
  const others = [
    ...[...vectors, ...norms].map((name) => sines(name, [D])),
    ...matrices.map((name) => sines(name, [D, D])),
    sines(`${layer}.self_attn.sinks`, [1]),
    sines(`${layer}.mlp.router.weight`, [EXPERTS, D]),
    sines(`${layer}.mlp.router.bias`, [EXPERTS]),
    sines(`${layer}.mlp.experts.gate_up_proj_bias`, [EXPERTS, 2 * D]),
    sines(`${layer}.mlp.experts.down_proj_bias`, [EXPERTS, D]),
  ];
  const experts = [
    expertsOf(`${layer}.mlp.experts.gate_up_proj`, 2 * D),
    expertsOf(`${layer}.mlp.experts.down_proj`, D),
  ];
  const [packed, plain] = (['packed', 'plain'] as const).map((form) => {
    const folder = join(temporaryDirectory(), form);
    mkdirSync(folder);
    writeFileSync(join(folder, 'config.json'), JSON.stringify(settings));
    writeSafetensors(join(folder, 'model.safetensors'), [
      ...others,
      ...experts.flatMap((each) => each[form]),
    ]);
    const model = loaded(pretrainedLm(folder), folder);
    expect(model.lines).toEqual([expect.stringMatching(/^Initial values of (\d+) of \1 variables come/)]);
    return model.state.views;
  });
  expect(packed).toEqual(plain);
});

test('matrices in FP8', () => {
  const quantization_config = { quant_method: 'fp8', fmt: 'e4m3', activation_scheme: 'dynamic' };
  const [packed, plain] = [true, false].map((isPacked) => {
    const folder = join(temporaryDirectory(), `qwen3 ${isPacked}`);
    cpSync(join(import.meta.dirname, '../../fixtures/published/families/qwen3'), folder, { recursive: true });
    const path = join(folder, 'model.safetensors');
    const file = new SafetensorsFile(path);
    const tensors = file.layout.tensors.flatMap(({ name, shape }): NamedTensor | NamedTensor[] => {
      if (shape.length !== 2) return { name, shape, dtype: 'F32', data: file.read(name) };
      // Codes of 1 to 1.875, and their negatives; all are one block.
      const steps = Array.from({ length: shape[0]! * shape[1]! }, (_, i) => (i * 5 + name.length) % 16);
      const value = (step: number) => (step < 8 ? 1 + step / 8 : -step / 8) / 4;
      if (!isPacked) return { name, shape, dtype: 'F32', data: Float32Array.from(steps, value) };
      const data = Uint8Array.from(steps, (step) => (step < 8 ? 0x38 + step : 0xb0 + step));
      return [
        { name, shape, dtype: 'F8_E4M3', data },
        { name: `${name}_scale_inv`, shape: [1, 1], dtype: 'F32', data: Float32Array.of(0.25) },
      ];
    });
    file.close();
    rmSync(path);
    writeSafetensors(path, tensors);
    const config = join(folder, 'config.json');
    const settings = JSON.parse(readFileSync(config, 'utf8'));
    const weight_block_size = [128, 128];
    writeFileSync(
      config,
      JSON.stringify({ ...settings, quantization_config: { ...quantization_config, weight_block_size } }),
    );
    return loaded(pretrainedLm(folder), folder).state.views;
  });
  expect(packed).toEqual(plain);
});
