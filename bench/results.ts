/** @file Output of the measured programs, and its medians over rounds. */

export type Precision = 'f32' | 'bf16';

/** The line of JSON that a training program prints. */
export interface StepResult {
  /** Name and version of the framework. */
  readonly version: string;
  readonly shape: string;
  readonly precision: Precision;
  /** How it ran: an engine, or eager or compile. */
  readonly mode: string;
  readonly threads: number;
  readonly parameters: number;
  readonly steps: number;
  readonly medianMs: number;
  readonly minMs: number;
  /** CPU time of all threads, of the step that took least. */
  readonly minCpuMs: number;
  readonly firstStepSeconds: number;
  /** At the initial weights, near the logarithm of the vocabulary's size in every framework. */
  readonly firstLoss: number;
  readonly loss: number;
  readonly tokensPerSec: number;
  /** Most memory resident before there was a model: what the libraries take. */
  readonly loadedRssMb: number;
  readonly peakRssMb: number;
}

/** The line of JSON that a decoding program prints. */
export interface DecodeResult {
  readonly shape: string;
  /** Sequences at a time. */
  readonly batch: number;
  readonly precision: Precision;
  readonly mode: string;
  readonly threads: number;
  /** Of a token of every sequence. */
  readonly medianMs: number;
  readonly minMs: number;
  /** Until the first sequence was complete: compilation included. */
  readonly firstSeconds: number;
  readonly tokensPerSec: number;
  readonly peakRssMb: number;
}

/** The line of JSON that a program prints which trains a model by LoRA. */
export interface LoraResult
  extends Pick<StepResult, 'medianMs' | 'minMs' | 'minCpuMs' | 'firstLoss' | 'loss' | 'peakRssMb'> {
  readonly parameters: number;
  /** Of the parameters. */
  readonly trained: number;
}

/** The line of JSON of a program that looks for the machine's peak. */
export interface PeakResult {
  readonly gflops: number;
  /** How it was reached. */
  readonly how: string;
}

/** One program with its settings, over all rounds. */
export interface Row {
  /** 'Luthier float32', 'PyTorch bfloat16'. */
  readonly name: string;
  /** The settings: 'compile, jemalloc, 2 threads'. */
  readonly how: string;
  readonly version: string;
  readonly rounds: number;
  readonly medianMs: number;
  readonly minMs: number;
  readonly minCpuMs: number;
  readonly loadedRssMb: number;
  readonly peakRssMb: number;
  readonly firstLoss: number;
}

/** The middle value, or the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('median of no values');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** One row of a program's rounds: the median of each figure, but the smallest of the shortest steps. */
export function toRow(name: string, how: string, results: readonly StepResult[]): Row {
  const middle = (pick: (result: StepResult) => number) => median(results.map(pick));
  return {
    name,
    how,
    version: results[0]!.version,
    rounds: results.length,
    medianMs: middle((r) => r.medianMs),
    minMs: Math.min(...results.map((r) => r.minMs)),
    minCpuMs: Math.min(...results.map((r) => r.minCpuMs)),
    loadedRssMb: middle((r) => r.loadedRssMb),
    peakRssMb: middle((r) => r.peakRssMb),
    firstLoss: results[0]!.firstLoss,
  };
}

/** The fastest of the rows that ran in most rounds; undefined for no rows. */
export function fastest(rows: readonly Row[]): Row | undefined {
  const rounds = Math.max(...rows.map((row) => row.rounds));
  return rows.filter((row) => row.rounds === rounds).sort((a, b) => a.medianMs - b.medianMs)[0];
}

/** Items by key, both in the order of first appearance. */
export function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
