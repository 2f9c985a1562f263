/** @file What MFU needs: the model's FLOPs from cost analysis, and the machine's peak from matrix products. */
import { compile, costAnalysis, tf } from '../compiler/index.js';
import { calibratePeak, type Peak, statedPeak, trainFlopsPerToken } from '../summaries/index.js';
import { forwardStep, type SingleTask } from '../tasks/index.js';
import type { BatchBuffers } from './batchBuffers.js';
import { compileOptions, type EngineOptions } from './options.js';
import { type FlatTrainState, trainSpecs } from './trainProgram.js';

/** Edges of the square matrices that are multiplied to find the peak. */
const sizes = [512, 1024, 1536];
/** Each size is tried for this long, and at least twice: the first runs warm up caches and threads. */
const millisecondsPerSize = 80;

/** Model FLOPs of a training step, for each token or example of the batch. */
export function modelFlops(task: SingleTask, state: FlatTrainState, buffers: BatchBuffers): number {
  const forward = costAnalysis(forwardStep(task), trainSpecs(state, buffers)).flops;
  return trainFlopsPerToken(forward, buffers.size);
}

/** The peak that the options give, else the best of several matrix products by the engine that trains. */
export function findPeak(options: EngineOptions): Promise<Peak> {
  if (options.peakTflops !== undefined) return Promise.resolve(statedPeak(options.peakTflops));
  return calibratePeak((size) => matmulGflops(options, size), sizes);
}

/** The fastest of several products of two `size` by `size` matrices, in 1e9 FLOP/s. */
async function matmulGflops(options: EngineOptions, size: number): Promise<number> {
  const spec = { shape: [size, size], dtype: 'float32' as const };
  const product = await compile(
    ({ a, b }) => tf.matMul(a, b),
    { a: spec, b: spec },
    compileOptions(options, 'peak'),
  );
  const filled = () => new Float32Array(size * size).fill(1 / size);
  const call = product.bind({ inputs: { a: filled(), b: filled() } });
  let fastest = Number.POSITIVE_INFINITY;
  const started = performance.now();
  for (let run = 0; run < 2 || performance.now() - started < millisecondsPerSize; run++) {
    const before = performance.now();
    await call.run();
    fastest = Math.min(fastest, performance.now() - before);
  }
  await product.dispose();
  return (2 * size ** 3) / (fastest / 1000) / 1e9;
}
