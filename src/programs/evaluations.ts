/** @file The evaluations and decodes of a training run: which are due at a step, which have yet to run, what comes of them. */
import { EndOfData, type InputSource } from '../inputs/index.js';
import { InterruptedError } from '../system/index.js';
import type { SingleTask } from '../tasks/index.js';
import { DecodeProgram } from './decodeProgram.js';
import { EvalProgram, EvalSteps, type RollingPosition } from './evalProgram.js';
import { type JobOptions, phase } from './options.js';
import type { Reporter } from './reporter.js';
import type { FlatTrainState } from './stepCalls.js';
import { averaged } from './taskState.js';
import type { TrainMeter } from './trainMeter.js';

/** Tells what came of an evaluation or a decode. */
type Report = (reporter: Reporter) => void;

/** Something that is done every so many steps, between two of them. */
interface DueProgram {
  /** Program of its summaries. */
  readonly name: string;
  readonly phase: 'evaluation' | 'decoding';
  isDue(step: number): boolean;
  /** Gives undefined where it was stopped. */
  run(isStopped: () => boolean): Promise<Report | undefined>;
}

/** What the evaluations are told of the run that they are part of. */
interface Run {
  readonly reporter: Reporter;
  readonly meter: TrainMeter;
  readonly isStopped: () => boolean;
}

/** All of them, in their order. Each runs once at a step that it is due at, in this process or in the one that goes on. */
export class Evaluations {
  readonly #evals: readonly EvalProgram[];
  readonly #decodes: readonly DecodeProgram[];
  readonly #programs: readonly DueProgram[];
  #pending: readonly string[] = [];

  /** @param input the one that trains: its next batch is evaluated, and not taken. */
  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly state: FlatTrainState,
    private readonly input: InputSource,
  ) {
    const { mode, datasets, decodeDatasets } = options;
    const { evalSkipTrain, evalUseEmaStates, decodeUseEmaStates } = task.hp.train.hp;
    const steps = new EvalSteps(options, task, evalUseEmaStates ? averaged(state) : state);
    const decoded = decodeUseEmaStates ? averaged(state) : state;
    const evaluates = mode === 'train' ? [] : datasets.filter((dataset) => !dataset.isTraining);
    const decodes = mode === 'train_and_decode' ? decodeDatasets : [];
    this.#evals = evaluates.map((dataset) => new EvalProgram(options, task, steps, dataset));
    this.#decodes = decodes.map((dataset) => new DecodeProgram(options, task, decoded, dataset));
    this.#programs = [
      ...(evalSkipTrain ? [] : [this.#ofTraining(steps)]),
      ...this.#evals.map((program) => this.#evaluation(program)),
      ...this.#decodes.map((program) => this.#decode(program)),
    ];
  }

  /** Says before the first step what is wrong with tokenizers. @throws JobError, ConfigError as `openDataset` */
  checkDatasets(): void {
    for (const program of [...this.#evals, ...this.#decodes]) program.checkDataset();
  }

  /** Names of those that have yet to run at the present step. */
  get pending(): readonly string[] {
    return this.#pending;
  }

  /** Where evaluations are that go on through their data, by name. */
  positions(): Record<string, RollingPosition> {
    const entries = this.#evals.flatMap(({ name, position }) =>
      position ? [[name, position] as const] : [],
    );
    return Object.fromEntries(entries);
  }

  /** Goes on from what an earlier process saved. */
  restore(pending: readonly string[], positions: Readonly<Record<string, RollingPosition>>): void {
    this.#pending = this.#programs.map(({ name }) => name).filter((name) => pending.includes(name));
    for (const program of this.#evals) {
      const position = positions[program.name];
      if (position !== undefined) program.goOnFrom(position);
    }
  }

  /** Training has come to this step: what is due at it is to run. */
  reach(step: number): void {
    this.#pending = this.#programs.filter((program) => program.isDue(step)).map(({ name }) => name);
  }

  /**
   * Runs what is pending, until a signal comes.
   *
   * @throws the error of one that fails, where `onEvalError` is `stop`.
   */
  async run({ reporter, meter, isStopped }: Run): Promise<void> {
    if (this.#pending.length === 0) return;
    meter.pause();
    for (const program of this.#programs.filter(({ name }) => this.#pending.includes(name))) {
      if (isStopped()) break;
      const report = await phase(this.options, program.phase, () =>
        this.#attempt(program, reporter, isStopped),
      );
      if (report === undefined) break;
      report(reporter);
      this.#pending = this.#pending.filter((name) => name !== program.name);
    }
    meter.resume();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#evals, ...this.#decodes].map((program) => program.close()));
  }

  async #attempt(
    program: DueProgram,
    reporter: Reporter,
    isStopped: () => boolean,
  ): Promise<Report | undefined> {
    try {
      return await program.run(isStopped);
    } catch (cause) {
      // The signal stopped its compiler: it runs when training goes on.
      if (cause instanceof InterruptedError && isStopped()) return undefined;
      const error = cause instanceof Error ? cause : new Error(String(cause));
      const goesOn = this.task.hp.train.hp.onEvalError === 'continue';
      reporter.failed(program.name, this.state.step, error, goesOn);
      if (!goesOn) throw cause;
      return () => {};
    }
  }

  #ofTraining(steps: EvalSteps): DueProgram {
    const { input, state } = this;
    const name = 'eval_train';
    const run = async (): Promise<Report> => {
      try {
        const metrics = await steps.run(input.name, await input.peek());
        return (reporter) => reporter.evaluated(name, state.step, { metrics, batches: 1, seconds: 0 });
      } catch (error) {
        // Data that ends with the last step of training has no further batch.
        if (error instanceof EndOfData) return () => {};
        throw error;
      }
    };
    return { name, phase: 'evaluation', isDue: (step) => this.#isEvaluated(step), run };
  }

  #evaluation(program: EvalProgram): DueProgram {
    const { name } = program;
    const run = async (isStopped: () => boolean): Promise<Report | undefined> => {
      const { step } = this.state;
      const result = await program.run(step, isStopped);
      return result && ((reporter) => reporter.evaluated(name, step, result));
    };
    return { name, phase: 'evaluation', isDue: (step) => this.#isEvaluated(step), run };
  }

  #decode(program: DecodeProgram): DueProgram {
    const { name } = program;
    const run = async (isStopped: () => boolean): Promise<Report | undefined> => {
      const { step } = this.state;
      const result = await program.run(step, isStopped);
      return result && ((reporter) => reporter.decoded(name, step, result));
    };
    return { name, phase: 'decoding', isDue: (step) => this.#isDecoded(step), run };
  }

  #isEvaluated(step: number): boolean {
    const { numTrainSteps, evalIntervalSteps } = this.task.hp.train.hp;
    return step >= numTrainSteps || step % evalIntervalSteps === 0;
  }

  #isDecoded(step: number): boolean {
    const { numTrainSteps, decodeIntervalSteps, decodeStartAfterNSteps } = this.task.hp.train.hp;
    if (step >= numTrainSteps) return true;
    return decodeIntervalSteps !== null && step % decodeIntervalSteps === 0 && step >= decodeStartAfterNSteps;
  }
}
