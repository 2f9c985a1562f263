/** @file Files of --profile, and their excerpt for the console. */
import { join } from 'node:path';
import {
  chooseBfloat16,
  kernelRates,
  memoryBandwidth,
  type Profiler,
  productsBy,
} from '../../compiler/index.js';
import { type JobOptions, writeJobFile } from '../../runs/index.js';
import { findPeak, type Peak } from '../mfu.js';
import { type Limits, profileText } from './report.js';
import { traceJson } from './trace.js';

/** Number of layers per program on the console. */
const shownLayers = 24;

/** The table of kernels, and the products of bfloat16 that this run has taken. */
async function kernelsOf({ bfloat16Products }: JobOptions): Promise<Limits['kernels']> {
  const table = await kernelRates();
  return table === null
    ? undefined
    : { table, products: productsBy(table.kernels, bfloat16Products ?? chooseBfloat16(table)) };
}

/** The machine's limits, if a program's threads were timed. */
async function limitsOf(
  options: JobOptions,
  { programs }: Profiler,
  known: Peak | undefined,
): Promise<Limits> {
  const told = programs.filter(({ runs, threads }) => runs > 0 && threads > 0);
  if (told.length === 0) return { flops: null, flopsSource: '', bytes: null };
  const longest = told.reduce((a, b) => (b.seconds > a.seconds ? b : a));
  const { flops, source } = known ?? (await findPeak(options, longest.precision));
  const bytes = await memoryBandwidth(options.numThreads);
  return { flops, flopsSource: source, bytes, kernels: await kernelsOf(options) };
}

/**
 * Writes profile.txt and trace.json to the run's directory `profile`.
 *
 * @param steps profiled training steps, 0 without training.
 * @param peak of MFU, if known already.
 * @returns text for the console.
 * @throws JobError if they can't be written.
 */
export async function writeProfile(
  options: JobOptions,
  profiler: Profiler,
  steps: number,
  peak?: Peak,
): Promise<string> {
  // Taken before measuring the machine, which is not part of the job.
  const course = { steps, seconds: profiler.seconds };
  const limits = await limitsOf(options, profiler, peak);
  const directory = join(options.jobLogDir, 'profile');
  writeJobFile(join(directory, 'profile.txt'), profileText(profiler, course, limits));
  writeJobFile(join(directory, 'trace.json'), traceJson(profiler));
  return `${profileText(profiler, course, limits, shownLayers)}All of it is in ${directory}.`;
}
