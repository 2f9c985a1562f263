/** @file Training as a program of the loop: several steps a call, metered, reported, summarised. */
import { flatViews } from '../compiler/index.js';
import { sumOfSquares } from '../learners/index.js';
import type { Program, SingleTask } from '../tasks/index.js';
import type { CheckpointProgram } from './checkpointProgram.js';
import type { DuePrograms } from './duePrograms.js';
import { FiniteCheck } from './finiteCheck.js';
import { invalidStepsError, mostInvalidSteps } from './invalidSteps.js';
import { findPeak, modelCost } from './mfu.js';
import { type JobOptions, phase } from './options.js';
import { TRAIN } from './programDataset.js';
import type { Run } from './run.js';
import type { StepTaps } from './stepTaps.js';
import type { TrainMeter } from './trainMeter.js';
import type { TrainProgram, TrainReport } from './trainProgram.js';

/** Components of training. */
interface Parts {
  readonly options: JobOptions;
  readonly task: SingleTask;
  readonly program: TrainProgram;
  readonly meter: TrainMeter;
  /** Ends a call of several steps, like `programs`. */
  readonly checkpoints: CheckpointProgram;
  readonly programs: DuePrograms;
  readonly taps?: StepTaps | undefined;
}

/** The program that takes training steps. */
export class MeteredTraining implements Program<Run> {
  readonly name = TRAIN;
  /** Steps taken in this process. */
  #taken = 0;
  readonly #check: FiniteCheck | undefined;

  constructor(private readonly parts: Parts) {
    const { options, program } = parts;
    this.#check = options.debug === 'nan' ? new FiniteCheck(program) : undefined;
  }

  isDue(step: number): boolean {
    return step < this.#hp.numTrainSteps;
  }

  /** Takes steps in one call, and reports them. @throws JobError after too many invalid steps in a row */
  async run(run: Run): Promise<undefined> {
    const { task, program, meter, options, programs, checkpoints } = this.parts;
    const first = run.step;
    this.#check?.begin();
    const reports = await program.runSteps(this.#stepsAtOnce(first), () => this.#tap(run));
    await this.#check?.end(reports[0]!);
    programs.reach(run.step);
    meter.lap(reports.length, program.inputSeconds);
    meter.addSkipped(program.takeSkipped());
    for (const [i, report] of reports.entries()) {
      const step = first + i + 1;
      meter.add(report);
      if (report.update.isValidStep === 0) run.reporter.invalidStep(step, report, meter.skipped);
      if (this.#isSummarised(step)) await phase(options, 'summaries', () => this.#summarise(run, report));
      else run.reporter.progress(step, meter);
      if (this.#hasHistograms(step)) this.#writeHistograms(run);
    }
    if (this.#taken === 0 && this.isDue(run.step)) options.profiler?.restart();
    this.#taken += reports.length;
    if (meter.invalidInARow >= mostInvalidSteps(task))
      throw await invalidStepsError(
        { task, program, meter, checkpointer: checkpoints.checkpointer },
        reports.at(-1)!,
      );
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

  /** Reads the taps of the next step, if it has any. */
  async #tap(run: Run): Promise<void> {
    const { taps } = this.parts;
    const next = run.step + 1;
    if (taps?.isAt(next)) await run.aside(async () => run.reporter.tell(...(await taps.read(next))));
  }

  #hasHistograms(step: number): boolean {
    const { histogramIntervalSteps: interval } = this.#hp;
    return interval !== null && step % interval === 0;
  }

  /** Writes parameters, and the gradients of the last step, which ends its call. */
  #writeHistograms(run: Run): void {
    const { views, changing, grads } = this.parts.program.state;
    const tagged = (prefix: string, arrays: Readonly<Record<string, Float32Array>>) =>
      Object.entries(arrays).map(([path, values]) => [`${prefix}/${path}`, values]);
    run.reporter.summary(
      TRAIN,
      run.step,
      Object.fromEntries([...tagged('params', views), ...tagged('gradients', flatViews(changing, grads))]),
    );
  }

  /** Steps per call: within the latency budget, and up to the next one at which something is due or the run may end. */
  #stepsAtOnce(step: number): number {
    const { task, program, meter, programs, checkpoints, taps } = this.parts;
    const untilEnd = Math.max(1, mostInvalidSteps(task) - meter.invalidInARow);
    const most = this.#check ? 1 : Math.min(program.timelySteps(meter.stepSeconds), untilEnd);
    const isPause = (at: number) =>
      this.#isSummarised(at) ||
      this.#hasHistograms(at) ||
      programs.isDue(at) ||
      checkpoints.isDue(at) ||
      taps?.isAt(at + 1);
    let count = 1;
    while (count < most && !isPause(step + count)) count++;
    return count;
  }

  /** Writes the summary since the previous one. @param report of the last step */
  async #summarise(run: Run, report: TrainReport): Promise<void> {
    const { task, program, meter, options } = this.parts;
    const { state, buffers, updater } = program;
    const { learner, variableNormSummary } = this.#hp;
    await run.aside(async () => {
      // Counting FLOPs and measuring the peak take a while, which must not delay the first step.
      // Nor can they be counted where layers read values.
      if (!meter.cost && meter.throughput !== undefined && options.debug !== 'eager') {
        const { flops, precision } = modelCost(task, state, buffers);
        meter.cost = { flops, peak: await findPeak(options, precision) };
      }
      const scalars = meter.take(report);
      if (learner.hp.varNormSummary) scalars['learning/var_norm'] = updater.varNorm();
      if (learner.hp.gradNormIndividualVars)
        for (const [path, norm] of Object.entries(updater.gradNorms()))
          scalars[`per_var_grad_norm/${path}`] = norm;
      if (variableNormSummary)
        for (const [path, values] of Object.entries(run.params))
          scalars[`vars/${path}`] = rootMeanSquare(values);
      run.reporter.trainSummary(state.step, scalars, meter, program.images);
    });
  }
}

function rootMeanSquare(values: Float32Array): number {
  return Math.sqrt(sumOfSquares(values, 0, values.length) / Math.max(1, values.length));
}
