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
import { compileOptions, type EngineOptions } from '../runs/index.js';
import { forwardStep, type SingleTask } from '../tasks/index.js';
import type { BatchBuffers } from './batchBuffers.js';
import { trainSpecs } from './stepCalls.js';
import type { FlatTrainState } from './taskState.js';

/** Edges of the square matrices multiplied to find the peak; the best one depends on the machine. */
const SIZES = [512, 1024, 1536];
/** tfjs is as fast on small matrices; large ones would block the process for half a minute. */
const EAGER_SIZES = [128, 256];
/** Time per size, for at least two runs: the first ones warm up caches and threads. */
const MILLISECONDS_PER_SIZE = 80;

/** A peak and its method; both are in metrics.jsonl, so that an MFU can be verified. */
export interface Peak {
  /** FLOP/s. */
  readonly flops: number;
  readonly source: string;
}

/** The cost of a training step; FLOPs are the model's, of forward and backward pass, without rematerialisation. */
export interface ModelCost {
  /** Of all operations. */
  readonly flops: number;
  /** As PaLM counts them: of products alone, and attention's over all pairs of queries and keys. */
  readonly productFlops: number;
  /** Of those without the pairs that attention's window hides: causal attention counts half. */
  readonly visibleFlops: number;
  /** Precision of most products. */
  readonly precision: Precision;
}

/**
 * Observed throughput relative to a program that performs only the model's own arithmetic at peak speed. Work added by
 * the implementation, such as rematerialisation, does not count, so that programs for the same model are comparable.
 *
 * @param stepsPerSec observed.
 * @param modelFlopsPerStep of forward and backward pass.
 * @returns a fraction; 1 is the peak.
 */
export function mfu(stepsPerSec: number, modelFlopsPerStep: number, peak: Peak): number {
  return (stepsPerSec * modelFlopsPerStep) / peak.flops;
}

/** Model FLOPs of a training step, from the forward pass's: the backward pass costs twice as much. */
export const trainFlops = (forwardFlops: number): number => 3 * forwardFlops;

/** The cost of a training step on batches of these shapes. */
export function modelCost(task: SingleTask, state: FlatTrainState, buffers: BatchBuffers): ModelCost {
  const cost = costAnalysis(forwardStep(task), trainSpecs(task, state, buffers));
  const [flops, productFlops, visibleFlops] = [cost.flops, cost.productFlops, cost.visibleFlops].map(
    trainFlops,
  ) as [number, number, number];
  return { flops, productFlops, visibleFlops, precision: cost.precision };
}

/**
 * The peak in the options; else the rate of a register loop for machine code; else the best of several matrix products
 * of this precision on the training engine.
 *
 * @throws RangeError for `peakTflops` of 0 or less.
 */
export async function findPeak(options: EngineOptions, precision: Precision): Promise<Peak> {
  const { peakTflops, engine, device, numThreads, bfloat16Products } = options;
  if (peakTflops !== undefined) {
    if (!(peakTflops > 0))
      throw new RangeError(`--peak_tflops: expected a number above 0, got ${peakTflops}`);
    return { flops: peakTflops * 1e12, source: `--peak_tflops=${peakTflops}` };
  }
  const flops = mayBeNative(options) ? await nativePeak(precision, numThreads, bfloat16Products) : null;
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

/** FLOP/s of the fastest of several products of `size` by `size` matrices. */
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
