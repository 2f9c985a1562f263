/** @file Throughput in units of the data: one figure for the console, metrics.jsonl and TensorBoard. */
import { formatCount } from '../system/text/index.js';

/** Units processed per second. */
export interface Throughput {
  /** Their plural: tokens, images, examples. */
  readonly unit: string;
  readonly perSec: number;
}

/** As on the console: 45.2k tokens/s. */
export const formatThroughput = ({ unit, perSec }: Throughput): string => `${formatCount(perSec)} ${unit}/s`;

/** As a scalar: `tokens_per_sec`. */
export const throughputScalar = ({ unit, perSec }: Throughput): Record<string, number> => ({
  [`${unit}_per_sec`]: perSec,
});
