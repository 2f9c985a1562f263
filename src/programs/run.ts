/** @file A run as its programs see it: step, parameters, results of evaluations, stop signal. */
import { flatViews } from '../compiler/index.js';
import { InterruptedError, type StopSignal } from '../system/index.js';
import type { ProgramRun, WeightedValues } from '../tasks/index.js';
import type { Reporter } from './reporter.js';
import type { DecodeResult, EvalResult } from './results.js';
import type { FlatTrainState } from './taskState.js';
import type { TrainMeter } from './trainMeter.js';

/** Metrics of an evaluation, and the step at which it ran. */
export interface EvaluatedMetrics {
  readonly step: number;
  readonly metrics: WeightedValues;
}

/** A run of training, or of the programs of a checkpoint. */
export class Run implements ProgramRun {
  readonly #results = new Map<string, EvaluatedMetrics>();
  /** Reason given by a program that ended training, if one did. */
  ended: string | undefined;

  /** @param meter paused while programs run between steps */
  constructor(
    readonly directory: string,
    private readonly state: FlatTrainState,
    readonly reporter: Reporter,
    private readonly stop: StopSignal,
    private readonly meter?: TrainMeter,
  ) {}

  get step(): number {
    return this.state.step;
  }

  get params(): Readonly<Record<string, Float32Array>> {
    return flatViews(this.state.layout, this.state.params);
  }

  /** Whether a signal has asked the run to stop. */
  get isStopped(): boolean {
    return this.stop.received !== undefined;
  }

  metrics(program: string): WeightedValues | undefined {
    return this.#results.get(program)?.metrics;
  }

  /** The step of the newest evaluation of a program, if any. */
  evaluatedAt(program: string): number | undefined {
    return this.#results.get(program)?.step;
  }

  /** The newest evaluations by program, for `restore`. */
  get results(): Readonly<Record<string, EvaluatedMetrics>> {
    return Object.fromEntries(this.#results);
  }

  restore(results: Readonly<Record<string, EvaluatedMetrics>>): void {
    for (const [program, evaluated] of Object.entries(results)) this.#results.set(program, evaluated);
  }

  /** Records and reports the result of an evaluation. */
  evaluated(program: string, result: EvalResult): void {
    this.#results.set(program, { step: this.step, metrics: result.metrics });
    this.reporter.evaluated(program, this.step, result);
  }

  /** Records and reports the result of a decode. */
  decoded(program: string, result: DecodeResult): void {
    this.#results.set(program, { step: this.step, metrics: result.metrics });
    this.reporter.decoded(program, this.step, result);
  }

  tell(line: string): void {
    this.reporter.tell(line);
  }

  endTraining(reason: string): void {
    this.ended ??= reason;
  }

  throwIfStopped(): void {
    if (this.isStopped) throw new InterruptedError(`Stopped by ${this.stop.received}.`);
  }

  /** Runs `act` until it ends or a signal interrupts it. @returns whether it completed */
  async unlessStopped(act: () => Promise<void>): Promise<boolean> {
    try {
      this.throwIfStopped();
      await act();
      return true;
    } catch (error) {
      if (error instanceof InterruptedError && this.isStopped) return false;
      throw error;
    }
  }

  /** Runs `act` off the training clock. */
  async aside(act: () => Promise<void>): Promise<void> {
    this.meter?.pause();
    await act();
    this.meter?.resume();
  }
}
