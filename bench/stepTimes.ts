/** @file Times of repeated steps by the clock and of the CPU, and their profile. */
import { nativePeak, type Profiler } from '../src/compiler/index.js';
import { profileText } from '../src/programs/profile/report.js';
import { median, type Precision } from './results.js';

/** Milliseconds of a step. */
export interface StepTimes {
  readonly medianMs: number;
  readonly minMs: number;
  /** CPU time of all threads, of the step that took least: on one thread, hardly longer beside other programs. */
  readonly minCpuMs: number;
}

/** Takes at least `steps` steps, and further ones for `seconds`. */
export async function timeSteps(
  step: () => Promise<unknown>,
  { steps, seconds = 0 }: { readonly steps: number; readonly seconds?: number },
): Promise<StepTimes> {
  const [milliseconds, cpu]: [number[], number[]] = [[], []];
  const end = performance.now() + seconds * 1000;
  while (milliseconds.length < steps || performance.now() < end) {
    const [before, busy] = [performance.now(), process.cpuUsage()];
    await step();
    milliseconds.push(performance.now() - before);
    const { user, system } = process.cpuUsage(busy);
    cpu.push((user + system) / 1000);
  }
  return { medianMs: median(milliseconds), minMs: Math.min(...milliseconds), minCpuMs: Math.min(...cpu) };
}

/** Writes tables of the time that kinds of work and layers took to stderr, beside the peak of the registers. */
export async function showProfile(profiler: Profiler, precision: Precision): Promise<void> {
  const flops = await nativePeak(precision === 'bf16' ? 'bfloat16' : 'float32');
  const limits = { flops, flopsSource: 'registers', bytes: null };
  process.stderr.write(profileText(profiler, { steps: 0, seconds: 0 }, limits));
}
