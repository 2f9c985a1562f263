/** @file Terms of MFU: FLOPs by PaLM's formula, a peak that is given or measured. */
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { SyntheticLmInput } from '../../src/inputs/index.js';
import { BatchBuffers } from '../../src/programs/batchBuffers.js';
import type { JobOptions } from '../../src/programs/index.js';
import { findPeak, mfu, modelCost } from '../../src/programs/mfu.js';
import { paramsOf } from '../../src/programs/taskState.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { Tiny } from '../fixtures/project/experiments/tiny.js';

const config = new Tiny().task();
const options: JobOptions = {
  ...{ name: 'tiny.Tiny', task: config, datasets: [], decodeDatasets: [], overrides: [], classVars: '' },
  ...{ moduleUrl: import.meta.url, jobLogDir: 'unused', mode: 'train' },
};

test('model FLOPs of a step are about 6 N + 12 L D T a token', async () => {
  const task = build(new Tiny().task());
  const state = paramsOf(task);
  const [layers, dims, length, vocabulary] = [1, 16, 16, 256];
  const input = build(SyntheticLmInput.config({ batchSize: 2, seqLen: length, vocabSize: vocabulary }));
  const buffers = new BatchBuffers('train', await input.peek());
  const { flops, productFlops, visibleFlops, precision } = modelCost(task, state, buffers);
  expect(precision).toBe('float32');
  const matrices = layers * 12 * dims * dims + vocabulary * dims;
  const attention = 12 * layers * dims * length;
  const palm = 2 * length * (6 * matrices + attention);
  expect(productFlops).toBe(palm);
  // Of the pairs of a query and a key, T (T + 1) / 2 are causal.
  expect(visibleFlops).toBe(palm - (2 * length * attention * (length - 1)) / 2 / length);
  expect(flops).toBeGreaterThan(palm);
  // Norms, activations and the softmax count too; in so small a model they are no trifle.
  expect(flops).toBeLessThan(1.5 * palm);
});

test('MFU is the model’s own FLOP/s over the peak', () => {
  expect(mfu(10, 18e9, { flops: 1e12, source: '' })).toBeCloseTo(0.18, 12);
});

test('a peak that is given stands', async () => {
  await expect(findPeak({ ...options, peakTflops: -1 }, 'float32')).rejects.toThrow(
    new RangeError('--peak_tflops: expected a number above 0, got -1'),
  );
  expect(await findPeak({ ...options, peakTflops: 0.5 }, 'float32')).toEqual({
    flops: 5e11,
    source: '--peak_tflops=0.5',
  });
});

const inRegisters = /^(\w+) multiply-adds in registers$/;
const byProducts = /^(\w+) matmul of (\d+) x \2, the best of 512, 1024, 1536$/;

test.each([
  ['auto', hasCompiler ? inRegisters : byProducts],
  ['onnx', byProducts],
] as const)('else it is measured, as engine %s multiplies', async (engine, expected) => {
  for (const precision of ['float32', 'bfloat16'] as const) {
    const { flops, source } = await findPeak({ ...options, engine }, precision);
    expect(flops).toBeGreaterThan(0);
    expect(source).toMatch(expected);
    expect(source.startsWith(precision)).toBe(true);
  }
});
