/** @file Training metrics: means since the last summary, speed without pauses, MFU. */
import { z } from 'zod';
import { addSkipped, type BatchCount, NONE_SKIPPED, type Skipped } from '../inputs/index.js';
import { OutlierBound, type UpdateReport } from '../learners/index.js';
import { type Throughput, throughputScalar } from '../summaries/index.js';
import { WeightedMeans, type WeightedValues } from '../tasks/index.js';
import { type ModelCost, mfu, type Peak } from './mfu.js';
import { Stopwatch } from './stopwatch.js';
import type { TrainReport } from './trainProgram.js';

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

/** Number of examples left out, where there are any. */
export function skippedScalar({ count }: Skipped): Scalars {
  return count > 0 ? { skipped: count } : {};
}

/** Learning rates of auxiliary optimizers under Pax's tags. */
function auxiliaryRates({ auxiliary = {} }: UpdateReport): Scalars {
  return Object.fromEntries(Object.entries(auxiliary).map(([name, rate]) => [`learning/lr_${name}`, rate]));
}

// An enum's type has keys by value, of which tsc declares '-Infinity' without its quotes.
const number = z.union([z.number(), z.literal(['NaN', 'Infinity', '-Infinity']).transform(Number)]);

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
  /** Numbers of steps, among the last ones, with their update left out. */
  invalidSteps: z.array(z.int()).optional(),
  /** Losses of the last steps, where they set a bound. */
  losses: z.array(z.number()).optional(),
  skippedExamples: z
    .strictObject({ count: z.int(), first: z.array(z.string()) })
    .default({ ...NONE_SKIPPED, first: [] }),
});

/** Steps over which those with their update left out are counted. */
export const BUDGET_STEPS = 1000;

/** Losses that set the bound of a spike. */
const SPIKE_WINDOW = 128;

/** Collects reports of training steps. */
export class TrainMeter {
  /** Seconds from the start of the process to the end of its first step. */
  firstStepSeconds: number | undefined;
  /** Number of invalid steps in the run: gradients not finite or too large, update skipped. */
  skipped = 0;
  /** Broken examples left out in the run. */
  skippedExamples = NONE_SKIPPED;
  /** Invalid steps since the last valid one. */
  invalidInARow = 0;
  /** The bound that the last loss is above; undefined where it is not. */
  spike: number | undefined;
  /** Model FLOPs per step and the machine's peak, once known. */
  cost: (Omit<ModelCost, 'precision'> & { readonly peak: Peak }) | undefined;
  lastLoss = Number.NaN;
  /** Numbers of the steps among the last ones with their update left out. */
  #invalidSteps: number[] = [];
  readonly #losses: OutlierBound | undefined;
  readonly #means = new WeightedMeans();
  readonly #watch = new Stopwatch();
  #loss = { sum: 0, count: 0 };
  /** Timed steps of this process, the stopwatch after them, and their seconds of waiting for batches. */
  #timed = { steps: 0, seconds: 0, waited: 0, units: 0 };
  /** Those until the last summary. */
  #summarized = this.#timed;
  /** Seconds of waiting that are not counted, or already are. */
  #waitedBefore = 0;
  /** What a batch of the last steps counts, and whether steps since the last summary counted another one. */
  #last: BatchCount | undefined;
  #isMixed = false;
  /** Steps per second of the last summary, and units of a batch. */
  #summaryRate: number | undefined;
  #summaryUnits: number | undefined;
  /** `inputWait` of the last summary. */
  #summaryWait: number | undefined;
  /** Steps, seconds and squared seconds of a step since the last summary; steps of one call count with their mean. */
  #stepTimes = { steps: 0, seconds: 0, squares: 0 };
  /** Moving average of the step time, and the stopwatch at its last update. */
  #recent = { seconds: 0, at: 0 };

  /**
   * @param batch of a training step
   * @param waitTag tag of the share of the time that steps wait for their batches
   * @param spikeSigma standard deviations by which a loss is a spike; 0: none is
   */
  constructor(
    private readonly batch: BatchCount,
    readonly waitTag: 'input_wait' | 'sampling' = 'input_wait',
    spikeSigma = 0,
  ) {
    if (spikeSigma > 0) this.#losses = new OutlierBound(spikeSigma, SPIKE_WINDOW);
  }

  /** Number of the last steps, at most `BUDGET_STEPS`, with their update left out. */
  get recentlyInvalid(): number {
    return this.#invalidSteps.length;
  }

  /** Adds the report of a step. @param step its number, from 1 */
  add(report: TrainReport, step: number): void {
    this.lastLoss = report.loss;
    const bound = this.#losses?.bound;
    this.#losses?.add(report.loss);
    this.spike = bound !== undefined && report.loss > bound ? bound : undefined;
    this.#means.add(report.metrics);
    this.#loss = { sum: this.#loss.sum + report.loss, count: this.#loss.count + 1 };
    const isValid = report.update.isValidStep === 1;
    this.invalidInARow = isValid ? 0 : this.invalidInARow + 1;
    if (!isValid) {
      this.skipped += 1;
      this.#invalidSteps.push(step);
    }
    while (this.#invalidSteps[0]! <= step - BUDGET_STEPS) this.#invalidSteps.shift();
  }

  /** The meter's state, for `restore` in a later process. */
  state(): z.input<typeof meterState> {
    const { skipped, invalidInARow, skippedExamples } = this;
    const means = Object.entries(this.#means.sumsByName()).map(([name, sums]) => [name, asPair(...sums)]);
    const loss = asPair(this.#loss.sum, this.#loss.count);
    const { count, first } = skippedExamples;
    return {
      ...{ loss, means: Object.fromEntries(means), skipped, invalidInARow },
      // States are what they were wherever nothing is left out.
      ...(count > 0 && { skippedExamples: { count, first: [...first] } }),
      ...(this.#invalidSteps.length > 0 && { invalidSteps: [...this.#invalidSteps] }),
      ...(this.#losses && { losses: [...this.#losses.state] }),
    };
  }

  /** Restores a state: the next summary includes earlier steps, except for its speed, which is this process's. */
  restore(state: z.output<typeof meterState>): void {
    const {
      loss: [sum, count],
      means,
      invalidSteps = [],
      losses = [],
      ...counts
    } = state;
    this.#invalidSteps = [...invalidSteps];
    this.#losses?.restore(losses);
    this.#loss = { sum, count };
    this.#means.restore(means);
    Object.assign(this, counts);
  }

  /** Adds examples left out of batches. */
  addSkipped(more: Skipped): void {
    this.skippedExamples = addSkipped(this.skippedExamples, more);
  }

  /**
   * Adds the time since the last call.
   *
   * @param steps taken meanwhile
   * @param inputSeconds that all steps of this process have waited for their batches.
   * @param batch of each of these steps.
   */
  lap(steps: number, inputSeconds: number, batch = this.batch): void {
    this.#isMixed ||= this.#last !== undefined && this.#last !== batch;
    this.#last = batch;
    const waited = inputSeconds - this.#waitedBefore;
    this.#waitedBefore = inputSeconds;
    if (this.firstStepSeconds === undefined) {
      // The first step is warm-up; speed is measured after it.
      this.firstStepSeconds = performance.now() / 1000;
      this.resume();
      return;
    }
    const now = this.#watch.seconds;
    const last = this.#timed;
    this.#timed = {
      ...{ steps: last.steps + steps, seconds: now, waited: last.waited + waited },
      units: last.units + steps * batch.count,
    };
    const seconds = (now - this.#recent.at) / steps;
    const times = this.#stepTimes;
    this.#stepTimes = {
      steps: times.steps + steps,
      seconds: times.seconds + steps * seconds,
      squares: times.squares + steps * seconds ** 2,
    };
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

  /** Mean throughput since the last summary, or of it; undefined before the second step. */
  get throughput(): Throughput | undefined {
    return this.#throughputAt(this.#stepsPerSec, this.#unitsPerStep);
  }

  /** Mean throughput of this process, without its first step and pauses. */
  get meanThroughput(): Throughput | undefined {
    const { steps, seconds, units } = this.#timed;
    return steps > 0 ? this.#throughputAt(steps / seconds, units / steps) : undefined;
  }

  /** MFU at `throughput`, undefined while either is unknown, and where batches of several kinds made the steps. */
  get mfu(): number | undefined {
    return this.#utilizations.mfu;
  }

  /** MFU by FLOPs of all operations, as PaLM counts them, and with causal halves. */
  get #utilizations(): Scalars {
    const [rate, { cost }] = [this.#stepsPerSec, this];
    if (!cost || !rate || this.#isMixed) return {};
    const by = (flops: number) => mfu(rate, flops, cost.peak);
    return { mfu: by(cost.flops), mfu_palm: by(cost.productFlops), mfu_causal: by(cost.visibleFlops) };
  }

  /** Share of the time, from 0 to 1, that steps wait for their batches, since the last summary; undefined before the second step. */
  get inputWait(): number | undefined {
    const [timed, summarized] = [this.#timed, this.#summarized];
    return timed.steps > summarized.steps
      ? (timed.waited - summarized.waited) / (timed.seconds - summarized.seconds)
      : this.#summaryWait;
  }

  /** Standard deviation of the seconds of a step since the last summary; undefined without steps. */
  get #stepDeviation(): number | undefined {
    const { steps, seconds, squares } = this.#stepTimes;
    return steps > 0 ? Math.sqrt(Math.max(0, squares / steps - (seconds / steps) ** 2)) : undefined;
  }

  get #stepsPerSec(): number | undefined {
    const steps = this.#timed.steps - this.#summarized.steps;
    return steps > 0 ? steps / (this.#timed.seconds - this.#summarized.seconds) : this.#summaryRate;
  }

  /** Units of a batch since the last summary, on average. */
  get #unitsPerStep(): number | undefined {
    const steps = this.#timed.steps - this.#summarized.steps;
    return steps > 0 ? (this.#timed.units - this.#summarized.units) / steps : this.#summaryUnits;
  }

  #throughputAt(stepsPerSec?: number, unitsPerStep = this.batch.count): Throughput | undefined {
    const { unit } = this.batch;
    return stepsPerSec === undefined ? undefined : { unit, perSec: unitsPerStep * stepsPerSec };
  }

  /** Means since the last summary: the loss, of the number of its steps, and the model's metrics. */
  means(): WeightedValues {
    const { sum, count } = this.#loss;
    return { loss: { value: sum / count, weight: count }, ...this.#means.result() };
  }

  /** The scalars of a summary under Pax's tags; resets the sums. */
  take({ update, summaries }: TrainReport): Scalars {
    this.#summaryRate = this.#stepsPerSec;
    this.#summaryUnits = this.#unitsPerStep;
    this.#summaryWait = this.inputWait;
    this.#summarized = this.#timed;
    const { throughput } = this;
    const deviation = this.#stepDeviation;
    this.#stepTimes = { steps: 0, seconds: 0, squares: 0 };
    const scalars: Scalars = {
      loss: this.#loss.sum / this.#loss.count,
      ...(throughput && { 'Steps/sec': this.#summaryRate!, ...throughputScalar(throughput) }),
      ...(deviation !== undefined && { step_sec_deviation: deviation }),
      ...this.#utilizations,
      ...(this.inputWait !== undefined && { [this.waitTag]: this.inputWait }),
      ...skippedScalar(this.skippedExamples),
    };
    Object.assign(scalars, metricScalars(this.#means.result()), {
      'learning/lr': update.learningRate,
      ...auxiliaryRates(update),
      'learning/raw_grad_norm': update.rawGradNorm,
      'learning/clipped_grad_norm': update.clippedGradNorm,
      'learning/grad_scale': update.gradScale,
      'learning/is_valid_step': update.isValidStep,
      'learning/skipped_steps': this.skipped,
      ...(update.gradNormBound !== undefined && { 'learning/grad_norm_bound': update.gradNormBound }),
      ...summaries,
    });
    this.#isMixed = false;
    this.#means.clear();
    this.#loss = { sum: 0, count: 0 };
    return scalars;
  }
}
