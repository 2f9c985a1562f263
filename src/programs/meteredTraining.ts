/** @file Training as a program of the loop: several steps a call, metered, reported, summarised. */
import type { Checkpointer, SaveStatistics } from '../checkpoints/index.js';
import { flatViews, floatsOf } from '../compiler/index.js';
import { sumOfSquares } from '../learners/index.js';
import { type JobOptions, phase, timed } from '../runs/index.js';
import type { Program, ProgramRun, SingleTask } from '../tasks/index.js';
import type { BatchBuffers } from './batchBuffers.js';
import type { DuePrograms } from './duePrograms.js';
import { FiniteCheck } from './finiteCheck.js';
import { GatheredMedia } from './gatheredMedia.js';
import { invalidStepsError, mostInvalidSteps, stepsUntilOverBudget } from './invalidSteps.js';
import { findPeak, modelCost } from './mfu.js';
import type { NewestMetrics } from './newestMetrics.js';
import { TRAIN } from './programDataset.js';
import type { Reporter } from './reporter.js';
import type { StepTaps } from './stepTaps.js';
import type { SquaresOfVariable } from './taskState.js';
import type { TrainMeter } from './trainMeter.js';
import type { TrainProgram, TrainReport } from './trainProgram.js';

/** Components of training. */
interface Parts {
  readonly options: JobOptions;
  readonly task: SingleTask;
  readonly program: TrainProgram;
  readonly meter: TrainMeter;
  readonly reporter: Reporter;
  readonly newest: NewestMetrics;
  readonly checkpointer: Checkpointer;
  /** What is due ends a call of several steps. */
  readonly programs: DuePrograms;
  readonly taps?: StepTaps | undefined;
}

/** The program that takes training steps. */
export class MeteredTraining implements Program {
  readonly name = TRAIN;
  /** Steps taken in this process. */
  #taken = 0;
  readonly #check: FiniteCheck | undefined;
  readonly #media: GatheredMedia;
  /** Costs of the steps on each kind of batch. */
  readonly #costs = new Map<BatchBuffers, NonNullable<TrainMeter['cost']>>();

  constructor(private readonly parts: Parts) {
    const { options, program } = parts;
    this.#media = new GatheredMedia(program.textsOf);
    this.#check = options.debug === 'nan' ? new FiniteCheck(program) : undefined;
  }

  isDue(step: number): boolean {
    return step < this.#hp.numTrainSteps;
  }

  /** Takes steps in one call, and reports them. @throws JobError after too many invalid steps in a row */
  async run(run: ProgramRun): Promise<undefined> {
    const { task, program, meter, reporter, options, programs, checkpointer } = this.parts;
    const first = run.step;
    await this.#check?.begin();
    const reports = await program.runSteps(this.#stepsAtOnce(first), () => this.#tap(run.step + 1));
    await this.#check?.end(reports[0]!);
    programs.reach(run.step);
    meter.lap(reports.length, program.inputSeconds, program.batch);
    meter.addSkipped(program.takeSkipped());
    for (const [i, report] of reports.entries()) {
      const step = first + i + 1;
      meter.add(report, step);
      const isInvalid = report.update.isValidStep === 0;
      if (isInvalid) reporter.invalidStep(step, report, meter.skipped);
      if (this.#hp.lossSpikeSigma > 0 && (isInvalid || meter.spike !== undefined))
        reporter.lossSpike(step, report, meter.spike, await program.rowNames(i));
      if (this.#gathers(step)) this.#media.add(program.media);
      const { memory, split } = program.state;
      const readsState = this.#hasHistograms(step) || (split === undefined && this.#isSummarised(step));
      if (readsState) await memory?.toHost();
      if (this.#isSummarised(step))
        await timed(options, 'summaries', () =>
          phase(options, 'summaries', () => this.#summarise(run, report)),
        );
      else reporter.progress(step, meter);
      if (this.#hasHistograms(step)) this.#writeHistograms(run.step);
    }
    options.time?.pass(run.step);
    if (this.#taken === 0 && this.isDue(run.step)) options.profiler?.restart();
    this.#taken += reports.length;
    if (meter.invalidInARow >= mostInvalidSteps(task) || stepsUntilOverBudget(task, meter) <= 0)
      throw await invalidStepsError({ task, program, meter, checkpointer }, reports.at(-1)!);
  }

  /** Number of profiled steps; the first of several is warm-up. */
  get profiledSteps(): number {
    return this.#taken > 1 ? this.#taken - 1 : this.#taken;
  }

  async close(): Promise<void> {}

  get #hp() {
    return this.parts.task.hp.train.hp;
  }

  #isSummarised(step: number): boolean {
    return step % this.#hp.summaryIntervalSteps === 0 || step >= this.#hp.numTrainSteps;
  }

  /** Whether a step's summaries that are no scalars are kept for the next summary. */
  #gathers(step: number): boolean {
    const { summaryAccumulateIntervalSteps: interval } = this.#hp;
    return this.#isSummarised(step) || (interval !== null && step % interval === 0);
  }

  /** Reads the taps of the next step, if it has any. */
  async #tap(next: number): Promise<void> {
    const { taps, meter, reporter } = this.parts;
    if (!taps?.isAt(next)) return;
    meter.pause();
    reporter.tell(...(await taps.read(next)));
    meter.resume();
  }

  #hasHistograms(step: number): boolean {
    const { histogramIntervalSteps: interval } = this.#hp;
    return interval !== null && step % interval === 0;
  }

  /** Writes parameters, and the gradients of the last step, which ends its call. */
  #writeHistograms(step: number): void {
    const { reporter, program } = this.parts;
    const { layout, views, changing, grads } = program.state;
    const tagged = (prefix: string, arrays: Readonly<Record<string, Float32Array>>) =>
      Object.entries(arrays).map(([path, values]) => [`${prefix}/${path}`, values]);
    reporter.summary(
      TRAIN,
      step,
      Object.fromEntries([
        ...tagged('params', floatsOf(layout, views)),
        ...tagged('gradients', flatViews(changing, grads)),
      ]),
    );
  }

  /** Steps per call: within the latency budget, and up to the next one at which something is due or the run may end. */
  #stepsAtOnce(step: number): number {
    const { task, program, meter, programs, taps } = this.parts;
    if (program.check.isAt(step + 1)) return 1;
    const untilInvalid = Math.min(
      mostInvalidSteps(task) - meter.invalidInARow,
      stepsUntilOverBudget(task, meter),
    );
    const untilEnd = Math.max(1, untilInvalid);
    const most = this.#check ? 1 : Math.min(program.timelySteps(meter.stepSeconds), untilEnd);
    const isPause = (at: number) =>
      this.#gathers(at) ||
      this.#hasHistograms(at) ||
      programs.isDue(at) ||
      taps?.isAt(at + 1) ||
      program.check.isAt(at + 1);
    let count = 1;
    while (count < most && !isPause(step + count)) count++;
    return count;
  }

  /** Writes the summary since the previous one. @param report of the last step */
  async #summarise(run: ProgramRun, report: TrainReport): Promise<void> {
    const { program, meter, reporter, newest, options, checkpointer } = this.parts;
    const { state, buffers, updater } = program;
    const { learner, variableNormSummary } = this.#hp;
    meter.pause();
    // Counting FLOPs and measuring the peak take a while, which must not delay the first step.
    // Nor can they be counted where layers read values.
    if (meter.throughput !== undefined && options.debug !== 'eager') {
      if (!this.#costs.has(buffers)) {
        const cost = modelCost(program.task, state, buffers);
        this.#costs.set(buffers, { ...cost, peak: await findPeak(options, cost.precision) });
      }
      meter.cost = this.#costs.get(buffers);
    }
    newest.set(TRAIN, state.step, meter.means());
    const scalars = {
      ...{ ...meter.take(report), ...saveScalars(checkpointer.takeStatistics()) },
      ...goodputScalars(options),
    };
    const epsilon = learner.hp.stochasticGradient?.epsilonAt(state.step, program.globalBatchSize);
    if (epsilon !== undefined) scalars['dp_metrics/epsilon'] = epsilon;
    const { varNormSummary, gradNormIndividualVars, varNormIndividualVars } = learner.hp;
    const hasNorms = varNormSummary || gradNormIndividualVars || varNormIndividualVars || variableNormSummary;
    const squares = hasNorms ? await state.split?.squares() : undefined;
    if (varNormSummary) scalars['learning/var_norm'] = updater.varNorm(squares);
    if (gradNormIndividualVars)
      for (const [path, norm] of Object.entries(updater.gradNorms(squares)))
        scalars[`per_var_grad_norm/${path}`] = norm;
    if (varNormIndividualVars)
      for (const [path, norm] of Object.entries(updater.varNorms(squares)))
        scalars[`per_var_norm/${path}`] = norm;
    if (variableNormSummary)
      for (const [path, meanSquare] of meanSquares(run, squares))
        scalars[`vars/${path}`] = Math.sqrt(meanSquare);
    reporter.trainSummary(state.step, scalars, meter, this.#media.take());
    meter.resume();
  }
}

/** Scalars of the saves since the last summary; none without any. */
function saveScalars({ saves, stallSeconds, writeSeconds, bytes }: SaveStatistics): Record<string, number> {
  if (saves === 0 && bytes === 0) return {};
  return {
    'checkpoints/saves': saves,
    'checkpoints/stall_sec': stallSeconds,
    'checkpoints/write_sec': writeSeconds,
    'checkpoints/bytes': bytes,
  };
}

/** Seconds of the run by use, over all its processes. */
function goodputScalars({ time }: JobOptions): Record<string, number> {
  const uses = Object.entries(time?.total ?? {});
  return Object.fromEntries(uses.map(([use, seconds]) => [`goodput/${use}_sec`, seconds]));
}

/** The mean square of each variable, by path. @param squares where ranks hold the variables in parts */
const meanSquares = (
  run: Pick<ProgramRun, 'params'>,
  squares: ReadonlyMap<string, SquaresOfVariable> | undefined,
): (readonly [path: string, meanSquare: number])[] =>
  squares === undefined
    ? Object.entries(run.params).map(([path, values]) => [
        path,
        sumOfSquares(values, 0, values.length) / Math.max(1, values.length),
      ])
    : [...squares].map(([path, { size, params }]) => [path, params / Math.max(1, size)]);
