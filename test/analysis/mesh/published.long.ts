/** @file Published MFU of Llama models, beside plans of the same trainings. */
import { expect, test } from 'vitest';
import { planMeshes, plannedDevice, readDevice } from '../../../src/analysis/index.js';
import { llamaTraining, type Published } from './llamas.js';

const PROJECTIONS = 'SAVE_QKV_OUT_PROJ_SEPARATE';
const NOT_THE_FIRST = 'SAVE_DOT_EXCEPT_LOGITS_FFN1';

const onTrillium = { devices: 256, rowsPerDevice: 4, policy: PROJECTIONS };
const torchtitan = {
  rowsPerDevice: 2,
  seqLen: 8192,
  policy: 'SAVE_DOT_ONLY',
  model: 'Llama 3.1 8B',
} as const;
const llama2 = { model: 'Llama 2 70B', seqLen: 4096, policy: NOT_THE_FIRST } as const;

// MaxText's tables of models (2024 and 2025), its recipes, and torchtitan's report of December 2024.
test.each<[file: string, published: Published, mfu: number, isFitted: boolean]>([
  ['tpu-v4', { ...llama2, devices: 64, rowsPerDevice: 4 }, 0.57, true],
  ['tpu-v5p', { ...llama2, devices: 64, rowsPerDevice: 4 }, 0.654, true],
  ['tpu-v5e', { ...llama2, devices: 256, rowsPerDevice: 2, seqLen: 2048, policy: PROJECTIONS }, 0.57, true],
  ['tpu-v6e', { ...onTrillium, model: 'Llama 3.1 8B', seqLen: 8192 }, 0.4546, true],
  ['tpu-v6e', { ...onTrillium, model: 'Llama 3.1 70B', seqLen: 8192 }, 0.5033, false],
  ['tpu-v6e', { ...onTrillium, model: 'Llama 2 70B', seqLen: 4096 }, 0.438, false],
  ['h100-sxm', { ...torchtitan, devices: 8 }, 0.39, true],
  ['h100-sxm', { ...torchtitan, devices: 128 }, 0.381, false],
])('%s, %o', (file, published, mfu, isFitted) => {
  const device = plannedDevice(readDevice(`devices/${file}.yaml`));
  // A plan of what does not fit tells its time as well: recipes keep some of it in the memory of hosts.
  const roomy = { ...device, memoryBytes: 1e15 };
  const { plans } = planMeshes(llamaTraining(published), {
    device: roomy,
    shape: [1, published.devices, 1],
  });
  expect(plans).toHaveLength(1);
  expect(Math.abs(plans[0]!.mfu - mfu)).toBeLessThan(isFitted ? 0.01 : 0.05);
});
