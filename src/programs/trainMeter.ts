/** @file Training metrics: means since the last summary, speed without pauses, MFU. */
import { z } from 'zod';
import { WeightedMeans, type WeightedValues } from '../tasks/index.js';
import { mfu, type Peak } from './mfu.js';
import type { TrainProgram, TrainReport } from './trainProgram.js';

/** Scalars by summary tag. */
export type Scalars = Record<string, number>;

/** Metrics under Pax's tags. */
export function metricScalars(metrics: WeightedValues): Scalars {
  const scalars: Scalars = {};
  for (const [name, { value, weight }] of Object.entries(metrics)) {
    scalars[`Metrics/${name}`] = value;
    scalars[`Metrics/${name}-weight`] = weight;
  }
  return scalars;
}

const number = z.union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity']).transform(Number)]);

/** Two numbers in JSON; non-finite ones, which JSON lacks, are strings. */
export const pair = z.tuple([number, number]);

/** Encodes two numbers for `pair`. */
export function asPair(...values: readonly [number, number]): z.input<typeof pair> {
  const [first, second] = values.map((value) => (Number.isFinite(value) ? value : String(value)));
  return [first, second] as z.input<typeof pair>;
}

/** A meter's JSON state in checkpoints: sums since the last summary, and counts over all steps. */
export const meterState = z.strictObject({
  /** Sum and count. */
  loss: pair,
  /** Σ value·weight and Σ weight, by metric. */
  means: z.record(z.string(), pair),
  skipped: z.int(),
  invalidInARow: z.int(),
});

/** Time spent on training, without pauses for evaluations. */
class Stopwatch {
  #elapsed = 0;
  #since: number | undefined;

  start(): void {
    this.#since ??= performance.now();
  }

  pause(): void {
    this.#elapsed = this.seconds * 1000;
    this.#since = undefined;
  }

  get seconds(): number {
    return (this.#elapsed + (this.#since === undefined ? 0 : performance.now() - this.#since)) / 1000;
  }
}

/** Collects reports of training steps. */
export class TrainMeter {
  /** Seconds from the start of the process to the end of its first step. */
  firstStepSeconds: number | undefined;
  /** Number of invalid steps in the run: gradients not finite or too large, update skipped. */
  skipped = 0;
  /** Invalid steps since the last valid one. */
  invalidInARow = 0;
  /** Model FLOPs per token (or example) and the machine's peak, once known. */
  cost: { readonly flops: number; readonly peak: Peak } | undefined;
  lastLoss = Number.NaN;
  readonly #means = new WeightedMeans();
  readonly #watch = new Stopwatch();
  #loss = { sum: 0, count: 0 };
  /** Steps since the last summary, and the stopwatch then. */
  #timed = { steps: 0, since: 0 };
  /** Moving average of the step time, and the stopwatch at its last update. */
  #recent = { seconds: 0, at: 0 };

  constructor(private readonly program: TrainProgram) {}

  /** Adds the report of a step. */
  add(report: TrainReport): void {
    this.lastLoss = report.loss;
    this.#means.add(report.metrics);
    this.#loss = { sum: this.#loss.sum + report.loss, count: this.#loss.count + 1 };
    const isValid = report.update.isValidStep === 1;
    this.invalidInARow = isValid ? 0 : this.invalidInARow + 1;
    if (!isValid) this.skipped += 1;
  }

  /** The meter's state, for `restore` in a later process. */
  state(): z.input<typeof meterState> {
    const { skipped, invalidInARow } = this;
    const means = Object.entries(this.#means.sumsByName()).map(([name, sums]) => [name, asPair(...sums)]);
    const loss = asPair(this.#loss.sum, this.#loss.count);
    return { loss, means: Object.fromEntries(means), skipped, invalidInARow };
  }

  /** Restores a state: the next summary includes earlier steps, except for its speed, which is this process's. */
  restore({ loss: [sum, count], means, skipped, invalidInARow }: z.output<typeof meterState>): void {
    this.#loss = { sum, count };
    this.#means.restore(means);
    Object.assign(this, { skipped, invalidInARow });
  }

  /** Adds the time since the last call. @param steps taken meanwhile */
  lap(steps: number): void {
    if (this.firstStepSeconds === undefined) {
      // The first step is warm-up; speed is measured after it.
      this.firstStepSeconds = performance.now() / 1000;
      this.resume();
      return;
    }
    this.#timed.steps += steps;
    const now = this.#watch.seconds;
    const seconds = (now - this.#recent.at) / steps;
    const weight = this.#recent.seconds === 0 ? 0 : 0.9 ** steps;
    this.#recent = { seconds: this.#recent.seconds * weight + seconds * (1 - weight), at: now };
  }

  /** Stops the watch until `resume`. */
  pause(): void {
    this.#watch.pause();
  }

  resume(): void {
    if (this.firstStepSeconds === undefined) return;
    this.#watch.start();
    this.#recent.at = this.#watch.seconds;
  }

  /** Moving-average step time in seconds, undefined before the second step. */
  get stepSeconds(): number | undefined {
    const { seconds } = this.#recent;
    return seconds > 0 ? seconds : undefined;
  }

  /** Tokens (or examples) per second at that step time. */
  get speed(): number | undefined {
    const seconds = this.stepSeconds;
    return seconds === undefined ? undefined : this.program.buffers.size / seconds;
  }

  /** MFU at a speed, undefined while cost or speed are unknown. */
  mfuAt(speed: number | undefined): number | undefined {
    if (this.cost === undefined || speed === undefined) return undefined;
    return mfu(speed, this.cost.flops, this.cost.peak);
  }

  /** The scalars of a summary under Pax's tags; resets the sums. */
  take({ update, summaries }: TrainReport): Scalars {
    const { size, unit } = this.program.buffers;
    const seconds = this.#watch.seconds - this.#timed.since;
    const { steps } = this.#timed;
    const scalars: Scalars = { loss: this.#loss.sum / this.#loss.count };
    if (steps > 0) {
      const speed = (steps * size) / seconds;
      scalars['Steps/sec'] = steps / seconds;
      scalars[`${unit}_per_sec`] = speed;
      const utilization = this.mfuAt(speed);
      if (utilization !== undefined) scalars.mfu = utilization;
    }
    Object.assign(scalars, metricScalars(this.#means.result()), {
      'learning/lr': update.learningRate,
      'learning/raw_grad_norm': update.rawGradNorm,
      'learning/clipped_grad_norm': update.clippedGradNorm,
      'learning/grad_scale': update.gradScale,
      'learning/is_valid_step': update.isValidStep,
      'learning/skipped_steps': this.skipped,
      ...summaries,
    });
    this.#means.clear();
    this.#loss = { sum: 0, count: 0 };
    this.#timed = { steps: 0, since: this.#watch.seconds };
    return scalars;
  }
}
