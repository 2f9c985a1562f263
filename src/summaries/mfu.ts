/** @file Model FLOPs utilization, as PaLM defines it (Chowdhery et al. 2022, appendix B). */

/**
 * Observed throughput over the throughput of a program that does nothing but the model's own arithmetic at peak speed.
 * Work that the implementation adds, such as rematerialisation, does not count, so different programs that train the
 * same model can be compared.
 *
 * @param tokensPerSec observed, over whole steps
 * @param modelFlopsPerToken of forward and backward, see `trainFlopsPerToken`
 * @param peakFlops FLOP/s of the devices in use
 * @returns a fraction; 1 is the peak
 */
export function mfu(tokensPerSec: number, modelFlopsPerToken: number, peakFlops: number): number {
  if (!(peakFlops > 0)) throw new RangeError(`peak FLOP/s: expected a number above 0, got ${peakFlops}`);
  return (tokensPerSec * modelFlopsPerToken) / peakFlops;
}

/**
 * Model FLOPs of a train step for each token: the backward pass costs twice the forward one.
 *
 * @param forwardFlops of the forward pass over a whole batch, a multiply-add counted as two
 */
export function trainFlopsPerToken(forwardFlops: number, tokensPerBatch: number): number {
  if (!(tokensPerBatch > 0))
    throw new RangeError(`tokens per batch: expected a number above 0, got ${tokensPerBatch}`);
  return (3 * forwardFlops) / tokensPerBatch;
}

/** A peak and how it was found; both stand in metrics.jsonl, so that an MFU can be checked. */
export interface Peak {
  /** FLOP/s. */
  readonly flops: number;
  readonly source: string;
}

/** The peak that `--peak_tflops` gives. */
export function statedPeak(peakTflops: number): Peak {
  if (!(peakTflops > 0)) throw new RangeError(`--peak_tflops: expected a number above 0, got ${peakTflops}`);
  return { flops: peakTflops * 1e12, source: `--peak_tflops=${peakTflops}` };
}

/**
 * The best of several matmul sizes, measured one after the other: small ones lose to overheads, large ones may to
 * memory, and which size is best depends on the machine.
 *
 * @param matmulGflops measures a product of two square matrices of this size, in 1e9 FLOP/s
 */
export async function calibratePeak(
  matmulGflops: (size: number) => Promise<number>,
  sizes: readonly number[] = [256, 512, 1024],
): Promise<Peak> {
  let best = { size: 0, gflops: 0 };
  for (const size of sizes) {
    const gflops = await matmulGflops(size);
    if (Number.isFinite(gflops) && gflops > best.gflops) best = { size, gflops };
  }
  if (best.gflops === 0) throw new Error(`no matmul of size ${sizes.join(', ')} could be measured`);
  const all = sizes.join(', ');
  return { flops: best.gflops * 1e9, source: `matmul of ${best.size} x ${best.size}, the best of ${all}` };
}
