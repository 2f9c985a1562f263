/** @file The programs between two steps: which are due, which have yet to run, what the failure of one means. */
import { ConfigError } from '../hparams/index.js';
import type { JsonValue } from '../inputs/index.js';
import type { Program, SingleTask } from '../tasks/index.js';
import { type JobOptions, phase } from './options.js';
import type { Run } from './run.js';

/** Programs in their order. Each runs once at a step that it is due at, in this process or in the one that resumes. */
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

  /** Names of those that have yet to run at the present step. */
  get pending(): readonly string[] {
    return this.#pending;
  }

  /** What those that have a state save, by name. */
  states(): Record<string, JsonValue> {
    const states = this.programs.flatMap((program) => {
      const state = program.getState?.();
      return state === undefined ? [] : [[program.name, state] as const];
    });
    return Object.fromEntries(states);
  }

  /** Resumes from what an earlier process saved. */
  restore(pending: readonly string[], states: Readonly<Record<string, JsonValue>>): void {
    this.#pending = this.programs.map(({ name }) => name).filter((name) => pending.includes(name));
    for (const program of this.programs) {
      const state = states[program.name];
      if (state !== undefined) program.setState?.(state);
    }
  }

  /** Whether any is due at a step. */
  isDue(step: number): boolean {
    return this.#dueAt(step).length > 0;
  }

  /** Training has come to this step: what is due at it is to run. */
  reach(step: number): void {
    this.#pending = this.#dueAt(step);
  }

  /**
   * Runs what is pending, until a signal comes; where one ends training, also what is due at the end.
   *
   * @throws the error of one that fails, where `onEvalError` is `stop`.
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
    // The same command runs them again, and ends at this step again.
    this.#pending = atEnd;
  }

  async #runEach(run: Run): Promise<void> {
    for (const program of this.programs.filter(({ name }) => this.#pending.includes(name))) {
      const act = () => this.#attempt(program, run);
      if (!(await phase(this.options, program.phase ?? program.name, act))) return;
      this.#pending = this.#pending.filter((name) => name !== program.name);
    }
  }

  /** Runs a program to its end or failure. @returns false where a signal stopped it: it runs when training is resumed */
  async #attempt(program: Program<Run>, run: Run): Promise<boolean> {
    try {
      return await run.unlessStopped(async () => {
        const scalars = await program.run(run);
        if (scalars !== undefined) run.reporter.summary(program.name, run.step, scalars);
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
