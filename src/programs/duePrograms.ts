/** @file Programs between two training steps: due, pending, failed. */
import { ConfigError } from '../hparams/index.js';
import type { JsonValue } from '../inputs/index.js';
import type { Program, SingleTask } from '../tasks/index.js';
import { type JobOptions, phase } from './options.js';
import type { Run } from './run.js';

/** Programs in order. Each runs once at every step at which it is due, in this process or in the one that resumes. */
export class DuePrograms {
  #pending: readonly string[] = [];

  /** @throws ConfigError where two have the same name */
  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly programs: readonly Program<Run>[],
  ) {
    const names = programs.map(({ name }) => name);
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    if (twice !== undefined)
      throw new ConfigError(
        `Two programs are called '${twice}': give each dataset and program its own name.`,
      );
  }

  /** Names of the programs that have yet to run at the present step. */
  get pending(): readonly string[] {
    return this.#pending;
  }

  /** States of programs, by name; stateless ones are absent. */
  states(): Record<string, JsonValue> {
    const states = this.programs.flatMap((program) => {
      const state = program.getState?.();
      return state === undefined ? [] : [[program.name, state] as const];
    });
    return Object.fromEntries(states);
  }

  /** Restores pending names and states from an earlier process. */
  restore(pending: readonly string[], states: Readonly<Record<string, JsonValue>>): void {
    this.#pending = this.programs.map(({ name }) => name).filter((name) => pending.includes(name));
    for (const program of this.programs) {
      const state = states[program.name];
      if (state !== undefined) program.setState?.(state);
    }
  }

  /** Whether any program is due at a step. */
  isDue(step: number): boolean {
    return this.#dueAt(step).length > 0;
  }

  /** Marks the programs due at `step` as pending. */
  reach(step: number): void {
    this.#pending = this.#dueAt(step);
  }

  /**
   * Runs pending programs until a signal; if one ends training, also runs those due at the end.
   *
   * @throws the error of a failing program if `onEvalError` is `stop`.
   */
  async run(run: Run): Promise<void> {
    if (this.#pending.length > 0) await run.aside(() => this.#runPending(run));
  }

  async close(): Promise<void> {
    await Promise.all(this.programs.map((program) => program.close()));
  }

  #dueAt(step: number, isLast = step >= this.task.hp.train.hp.numTrainSteps): string[] {
    return this.programs.filter((program) => program.isDue(step, isLast)).map(({ name }) => name);
  }

  async #runPending(run: Run): Promise<void> {
    const ran = this.#pending;
    await this.#runEach(run);
    if (run.ended === undefined) return;
    const atEnd = this.#dueAt(run.step, true);
    this.#pending = atEnd.filter((name) => !ran.includes(name));
    await this.#runEach(run);
    // The same command, started again, runs them again and ends at this step.
    this.#pending = atEnd;
  }

  async #runEach(run: Run): Promise<void> {
    for (const program of this.programs.filter(({ name }) => this.#pending.includes(name))) {
      const act = () => this.#attempt(program, run);
      if (!(await phase(this.options, program.phase ?? program.name, act))) return;
      this.#pending = this.#pending.filter((name) => name !== program.name);
    }
  }

  /** Runs a program. @returns false if a signal stopped it: it stays pending */
  async #attempt(program: Program<Run>, run: Run): Promise<boolean> {
    try {
      return await run.unlessStopped(async () => {
        const summaries = await program.run(run);
        if (summaries !== undefined) run.reporter.summary(program.name, run.step, summaries);
      });
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause));
      const goesOn = this.task.hp.train.hp.onEvalError === 'continue';
      run.reporter.failed(program.name, run.step, error, goesOn);
      if (!goesOn) throw cause;
      return true;
    }
  }
}
