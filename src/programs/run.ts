/** @file A job, and the view that each of its programs has of it. */
import type { BestCheckpoint } from '../checkpoints/index.js';
import { floatsOf } from '../compiler/index.js';
import { JobError, type JobOptions } from '../runs/index.js';
import { InterruptedError, type StopSignal } from '../system/index.js';
import type {
  DataDecodeSettings,
  DecodeResult,
  DecodeSettings,
  EvalResult,
  EvaluateSettings,
  Inference,
  InferResult,
  InferSettings,
  ProgramInput,
  ProgramRun,
  RestoredCheckpoint,
  WeightedValues,
  WholeCheckpoint,
} from '../tasks/index.js';
import type { Measurements } from './measurements.js';
import { NewestMetrics } from './newestMetrics.js';
import type { TRAIN } from './programDataset.js';
import type { Reporter } from './reporter.js';
import type { RestoredState } from './taskState.js';
import type { TrainMeter } from './trainMeter.js';

/** The program that saves checkpoints. */
export const CHECKPOINTS = 'checkpoints';

/** State that the programs of a job share. */
export interface RunParts {
  readonly options: Pick<JobOptions, 'jobLogDir' | 'mode' | 'progress'>;
  readonly state: RestoredState;
  readonly reporter: Reporter;
  readonly stop: StopSignal;
  readonly measurements: Measurements;
  /** Paused while programs run between steps; absent in a job that does not train. */
  readonly meter?: TrainMeter;
}

/** A run of training, or of the programs of a checkpoint. */
export class Run {
  readonly newest = new NewestMetrics();
  /** Reason given by a program that ended training, if one did. */
  ended: string | undefined;
  /** Whether a program of a job on a checkpoint would have ended training. */
  wouldEnd = false;
  /** The best checkpoint so far, if a program has named one. */
  best: BestCheckpoint | undefined;
  /** Names of programs that others have asked to run at this step. */
  readonly requested = new Set<string>();
  #whole: WholeCheckpoint[] = [];
  #measuring: Promise<unknown> = Promise.resolve();

  /** @param checkpoint that the state is of, in a job that does not train */
  constructor(
    readonly parts: RunParts,
    readonly checkpoint?: RestoredCheckpoint,
  ) {}

  get reporter(): Reporter {
    return this.parts.reporter;
  }

  get step(): number {
    return this.parts.state.step;
  }

  get isTraining(): boolean {
    return this.parts.options.mode.startsWith('train');
  }

  /** Whether a signal has asked the run to stop. */
  get isStopped(): boolean {
    return this.parts.stop.received !== undefined;
  }

  /** The run as a program sees it. */
  viewOf(program: string): ProgramRun {
    return new ProgramView(this, program);
  }

  /** Between parts of a program's work: whoever asks has not hung. */
  throwIfStopped(): void {
    this.parts.options.progress?.finished();
    if (this.isStopped) throw new InterruptedError(`Stopped by ${this.parts.stop.received}.`);
  }

  /** Runs `act` until it ends or a signal interrupts it. @returns whether it completed */
  async unlessStopped(act: () => Promise<unknown>): Promise<boolean> {
    try {
      await act();
      return true;
    } catch (error) {
      if (error instanceof InterruptedError && this.isStopped) return false;
      throw error;
    }
  }

  /** Runs `act` off the training clock. */
  async aside(act: () => Promise<void>): Promise<void> {
    this.parts.meter?.pause();
    await act();
    this.parts.meter?.resume();
  }

  /** Runs one evaluation or decode after another, since they share the memory of batches. */
  measured<T>(measure: () => Promise<T>): Promise<T> {
    const measuring = this.#measuring.then(measure);
    // A failure is that of whoever asked.
    this.#measuring = measuring.catch(() => {});
    return measuring;
  }

  /** Settles once nothing is measured any more, even where a program did not wait: steps change the weights. */
  async settled(): Promise<void> {
    await this.#measuring;
  }

  /** Waits no longer for measurements: after an error it may never end. */
  abandon(): void {
    this.#measuring = Promise.resolve();
  }

  /** Notes a checkpoint that is on the disk. */
  checkpointIsWhole(checkpoint: WholeCheckpoint): void {
    this.#whole.push(checkpoint);
  }

  /** Whether a checkpoint became whole since the last call of `takeWhole`. */
  get hasWhole(): boolean {
    return this.#whole.length > 0;
  }

  /** Checkpoints that became whole since the last call. */
  takeWhole(): readonly WholeCheckpoint[] {
    const whole = this.#whole;
    this.#whole = [];
    return whole;
  }
}

/** A run as one program sees it. */
class ProgramView implements ProgramRun {
  constructor(
    private readonly run: Run,
    private readonly program: string,
  ) {}

  get directory(): string {
    return this.run.parts.options.jobLogDir;
  }

  get isTraining(): boolean {
    return this.run.isTraining;
  }

  get step(): number {
    return this.run.step;
  }

  get checkpoint(): RestoredCheckpoint | undefined {
    return this.run.checkpoint;
  }

  get params(): Readonly<Record<string, Float32Array>> {
    const { layout, views } = this.run.parts.state;
    return floatsOf(layout, views);
  }

  metrics(program: string): WeightedValues | undefined {
    return this.run.newest.of(program)?.metrics;
  }

  metricsStep(program: string): number | undefined {
    return this.run.newest.of(program)?.step;
  }

  evaluate(input: ProgramInput | typeof TRAIN, settings: EvaluateSettings = {}): Promise<EvalResult> {
    const { run } = this;
    return run.measured(() => run.parts.measurements.evaluations.evaluate(input, this.#asked(settings)));
  }

  async infer(input: ProgramInput, settings: InferSettings = {}): Promise<Inference> {
    const { run } = this;
    const inTurn = <T>(act: () => Promise<T>) => run.measured(act);
    return run.parts.measurements.inferences.infer(input, { ...this.#asked(settings), inTurn });
  }

  decode(input: ProgramInput, settings: DataDecodeSettings = {}): Promise<DecodeResult> {
    const { run } = this;
    return run.measured(() => run.parts.measurements.decodes.decode(input, this.#asked(settings)));
  }

  report(result: EvalResult | DecodeResult | InferResult): void {
    const { run, program, step } = this;
    run.newest.set(program, step, result.metrics);
    if ('examples' in result) run.reporter.decoded(program, step, result);
    else if ('numExamples' in result) run.reporter.inferred(program, step, result);
    else run.reporter.evaluated(program, step, result);
  }

  save(reason?: string): void {
    const { run, program, step } = this;
    if (!run.isTraining)
      throw new JobError(
        `${program} asks for a checkpoint, and --mode=${run.parts.options.mode} reads one and saves none. ` +
          'Let the program ask where run.isTraining alone.',
      );
    if (reason !== undefined)
      run.reporter.tell(`${program} asks for a checkpoint at step ${step}: ${reason}`);
    run.requested.add(CHECKPOINTS);
  }

  saveBest(metric: string, value: number): void {
    if (!Number.isFinite(value))
      throw new RangeError(
        `${this.program}: ${metric} is ${value}, and the value of a best checkpoint is finite.`,
      );
    this.save();
    this.run.best = { step: this.step, metric, value };
  }

  tell(line: string): void {
    this.run.reporter.tell(line);
  }

  endTraining(reason: string): void {
    if (this.run.isTraining) this.run.ended ??= reason;
    else {
      this.run.wouldEnd = true;
      this.run.reporter.tell(`${this.program} would end training at step ${this.step}: ${reason}`);
    }
  }

  throwIfStopped(): void {
    this.run.throwIfStopped();
  }

  #asked<S extends DecodeSettings>(settings: S) {
    return { ...settings, program: this.program, throwIfStopped: () => this.throwIfStopped() };
  }
}
