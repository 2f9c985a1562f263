/**
 * @file Model FLOPs utilization (PaLM, Chowdhery et al., 2022, appendix B): the model's FLOPs from cost analysis, the machine's
 * peak as stated or measured.
 */
import {
  compile,
  costAnalysis,
  mayBeNative,
  nativePeak,
  type Precision,
  tf,
  withPrecision,
} from '../compiler/index.js';
import { forwardStep, type SingleTask } from '../tasks/index.js';
import type { BatchBuffers } from './batchBuffers.js';
import { compileOptions, type EngineOptions } from './options.js';
import { trainSpecs } from './stepCalls.js';
import type { FlatTrainState } from './taskState.js';

/** Edges of the square matrices that are multiplied to find the peak: which is best depends on the machine. */
const SIZES = [512, 1024, 1536];
/** tfjs is as fast on small ones, and takes half a minute for the others, in which nothing else is answered. */
const EAGER_SIZES = [128, 256];
/** Each size is tried for this long, and at least twice: the first runs warm up caches and threads. */
const MILLISECONDS_PER_SIZE = 80;

/** A peak and how it was found; both stand in metrics.jsonl, so that an MFU can be checked. */
export interface Peak {
  /** FLOP/s. */
  readonly flops: number;
  readonly source: string;
}

/** The cost of a training step. */
export interface ModelCost {
  /** Model FLOPs for each token or example of the batch. */
  readonly flops: number;
  /** In which most of its products multiply. */
  readonly precision: Precision;
}

/**
 * Observed throughput over that of a program that does nothing but the model's own arithmetic at peak speed. Work that the
 * implementation adds, such as rematerialisation, does not count, so that programs that train the same model compare.
 *
 * @param tokensPerSec observed, over whole steps.
 * @param modelFlopsPerToken of forward and backward pass.
 * @returns a fraction; 1 is the peak.
 */
export function mfu(tokensPerSec: number, modelFlopsPerToken: number, peak: Peak): number {
  return (tokensPerSec * modelFlopsPerToken) / peak.flops;
}

/** Model FLOPs of a training step from those of its forward pass: the backward pass costs twice as much. */
export const trainFlops = (forwardFlops: number): number => 3 * forwardFlops;

/** The cost of a training step on batches of these shapes. */
export function modelCost(task: SingleTask, state: FlatTrainState, buffers: BatchBuffers): ModelCost {
  const { flops, precision } = costAnalysis(forwardStep(task), trainSpecs(state, buffers));
  return { flops: trainFlops(flops) / buffers.size, precision };
}

/**
 * The peak that the options give, else the rate of a loop in registers where programs are machine code, else the best of
 * several matrix products of this precision by the engine that trains.
 *
 * @throws RangeError for `peakTflops` that is not above 0.
 */
export async function findPeak(options: EngineOptions, precision: Precision): Promise<Peak> {
  const { peakTflops, engine, device, numThreads } = options;
  if (peakTflops !== undefined) {
    if (!(peakTflops > 0))
      throw new RangeError(`--peak_tflops: expected a number above 0, got ${peakTflops}`);
    return { flops: peakTflops * 1e12, source: `--peak_tflops=${peakTflops}` };
  }
  const flops = mayBeNative(options) ? await nativePeak(precision, numThreads) : null;
  if (flops !== null) return { flops, source: `${precision} multiply-adds in registers` };
  const sizes = engine === 'eager' && device !== 'gpu' ? EAGER_SIZES : SIZES;
  let best = { size: 0, flops: 0 };
  for (const size of sizes) {
    const flops = await productFlops(options, precision, size);
    if (flops > best.flops) best = { size, flops };
  }
  const source = `${precision} matmul of ${best.size} x ${best.size}, the best of ${sizes.join(', ')}`;
  return { flops: best.flops, source };
}

/** The rate of the fastest of several products of two `size` by `size` matrices, in FLOP/s. */
async function productFlops(options: EngineOptions, precision: Precision, size: number): Promise<number> {
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
  for (let run = 0; run < 2 || performance.now() - started < MILLISECONDS_PER_SIZE; run++) {
    const before = performance.now();
    await call.run();
    fastest = Math.min(fastest, performance.now() - before);
  }
  await product.dispose();
  return (2 * size ** 3) / (fastest / 1000);
}
