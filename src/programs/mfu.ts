/** @file Terms of MFU: the model's FLOPs from cost analysis, and the machine's peak from matrix products. */
import {
  compile,
  costAnalysis,
  mayBeNative,
  nativePeak,
  type Precision,
  tf,
  withPrecision,
} from '../compiler/index.js';
import { calibratePeak, type Peak, statedPeak, trainFlopsPerToken } from '../summaries/index.js';
import { forwardStep, type SingleTask } from '../tasks/index.js';
import type { BatchBuffers } from './batchBuffers.js';
import { compileOptions, type EngineOptions } from './options.js';
import { type FlatTrainState, trainSpecs } from './stepCalls.js';

/** Edges of the square matrices that are multiplied to find the peak. */
const sizes = [512, 1024, 1536];
/** tfjs is as fast on small ones, and takes half a minute for the others, in which nothing else is answered. */
const eagerSizes = [128, 256];
/** Each size is tried for this long, and at least twice: the first runs warm up caches and threads. */
const millisecondsPerSize = 80;

/** What a training step computes. */
export interface ModelCost {
  /** Model FLOPs for each token or example of the batch. */
  readonly flops: number;
  /** In which most of its products multiply. */
  readonly precision: Precision;
}

/** The cost of a training step. */
export function modelCost(task: SingleTask, state: FlatTrainState, buffers: BatchBuffers): ModelCost {
  const { flops, precision } = costAnalysis(forwardStep(task), trainSpecs(state, buffers));
  return { flops: trainFlopsPerToken(flops, buffers.size), precision };
}

/**
 * The peak that the options give, else the rate of a loop in registers where programs are machine code, else the best of
 * several matrix products of this precision by the engine that trains.
 */
export async function findPeak(options: EngineOptions, precision: Precision): Promise<Peak> {
  if (options.peakTflops !== undefined) return statedPeak(options.peakTflops);
  const flops = mayBeNative(options) ? await nativePeak(precision, options.numThreads) : null;
  if (flops !== null) return { flops, source: `${precision} multiply-adds in registers` };
  const isEager = options.engine === 'eager' && options.device !== 'gpu';
  const measured = isEager ? eagerSizes : sizes;
  const peak = await calibratePeak((size) => matmulGflops(options, precision, size), measured);
  return { ...peak, source: `${precision} ${peak.source}` };
}

/** The fastest of several products of two `size` by `size` matrices, in 1e9 FLOP/s. */
async function matmulGflops(options: EngineOptions, precision: Precision, size: number): Promise<number> {
  const spec = { shape: [size, size], dtype: 'float32' as const };
  const product = await compile(
    ({ a, b }) => withPrecision(precision, () => tf.matMul(a, b)),
    { a: spec, b: spec },
    compileOptions({ ...options, profiler: undefined }, 'peak'),
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
