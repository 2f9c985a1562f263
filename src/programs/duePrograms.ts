/** @file Programs of a job between two steps and at its ends: due, pending, failed. */
import type { JsonValue } from '../inputs/index.js';
import { type JobOptions, phase, timed } from '../runs/index.js';
import type { Program, SingleTask } from '../tasks/index.js';
import { EvalProgram, EvalTrainProgram } from './evalProgram.js';
import { CHECKPOINTS, type Run } from './run.js';

/** Programs in order. Each runs once at every step at which it is due, in this process or in the one that resumes. */
export class DuePrograms {
  #pending: readonly string[];
  /** Programs that are due at the end, once one has ended training. */
  #atEnd: readonly string[] | undefined;

  /**
   * @param pending names of those that an earlier process has left to run at the present step
   * @param ran called after each that ran
   */
  constructor(
    private readonly options: JobOptions,
    private readonly task: SingleTask,
    private readonly programs: readonly Program[],
    pending: readonly string[] = [],
    private readonly ran: () => void = () => {},
  ) {
    this.#pending = pending;
  }

  /** Names of the programs that have yet to run at the present step, but for checkpoints, which the end saves, too. */
  get pending(): readonly string[] {
    return this.#pending.filter((name) => name !== CHECKPOINTS);
  }

  /**
   * Names of the programs that a process that resumes here runs. Where a program has ended training, all that are due at the
   * end run again, so that the same command ends at the same step.
   */
  get toResume(): readonly string[] {
    return this.#atEnd?.filter((name) => name !== CHECKPOINTS) ?? this.pending;
  }

  /** States of programs, by name; stateless ones are absent. */
  states(): Record<string, JsonValue> {
    const states = this.programs.flatMap((program) => {
      const state = program.getState?.();
      return state === undefined ? [] : [[program.name, state] as const];
    });
    return Object.fromEntries(states);
  }

  /** Whether any program is due at a step. */
  isDue(step: number): boolean {
    return this.#dueAt(step).length > 0;
  }

  /** Marks the programs due at `step` as pending. */
  reach(step: number): void {
    this.#pending = this.#dueAt(step);
  }

  /** Runs the hooks `start`, until a signal. @throws the first error */
  async start(run: Run): Promise<void> {
    await run.aside(async () => {
      for (const program of this.programs)
        if (!(await run.unlessStopped(() => this.#act(program, run, 'start')))) return;
    });
  }

  /**
   * Runs pending programs until a signal, and those that they ask for; if one ends training, also those due at the end.
   *
   * @throws the error of a failing program if `onEvalError` is `stop`, or the job does not train.
   */
  async run(run: Run): Promise<void> {
    if (!run.hasWhole && this.#next(run) === undefined && !this.#isToEnd(run)) return;
    await run.aside(async () => {
      await this.#tellWhole(run);
      await this.#runPending(run);
    });
  }

  /** Runs the hooks `end`, all of them even where one fails. @throws the first error */
  async end(run: Run): Promise<void> {
    const errors: unknown[] = [];
    for (const program of this.programs)
      await run.unlessStopped(() => this.#act(program, run, 'end')).catch((error) => errors.push(error));
    await this.#tellWhole(run).catch((error) => errors.push(error));
    if (errors.length > 0) throw errors[0];
  }

  /** Runs the hooks `onError`, the last program's first, so that the state is saved before others act. Never throws. */
  async fail(run: Run, cause: unknown): Promise<void> {
    const error = errorOf(cause);
    run.abandon();
    for (const program of this.programs.toReversed())
      await this.#act(program, run, 'onError', error).catch((failure) =>
        run.reporter.tell(`${program.name} failed, too, in its onError: ${errorOf(failure).message}`),
      );
    // Failures are told already.
    await this.#tellWhole(run).catch(() => {});
  }

  async close(): Promise<void> {
    await Promise.all(this.programs.map((program) => program.close()));
  }

  #dueAt(step: number, isLast = step >= this.task.hp.train.hp.numTrainSteps): string[] {
    return namesDueAt(this.programs, step, isLast);
  }

  /** The first program in order that is pending or asked for. */
  #next({ requested }: Run): Program | undefined {
    return this.programs.find(({ name }) => this.#pending.includes(name) || requested.has(name));
  }

  /** Whether a program has ended training, and those that are due at the end are not pending yet. */
  #isToEnd({ ended }: Run): boolean {
    return ended !== undefined && this.#atEnd === undefined;
  }

  async #runPending(run: Run): Promise<void> {
    const ran = new Set<string>();
    for (;;) {
      if (this.#isToEnd(run)) {
        this.#atEnd = this.#dueAt(run.step, true);
        this.#pending = [...this.#pending, ...this.#atEnd.filter((name) => !ran.has(name))];
      }
      const program = this.#next(run);
      if (program === undefined || !(await this.#attempt(run, program, () => this.#runOne(program, run))))
        return;
      ran.add(program.name);
      run.requested.delete(program.name);
      this.#pending = this.#pending.filter((name) => name !== program.name);
      this.ran();
    }
  }

  async #runOne(program: Program, run: Run): Promise<void> {
    run.throwIfStopped();
    const summaries = await this.#act(program, run, 'run');
    if (summaries !== undefined) run.reporter.summary(program.name, run.step, summaries);
  }

  /** Whether a program reads the parts of a state that ranks hold, and needs no whole. */
  #readsParts(program: Program): boolean {
    if (program.name === CHECKPOINTS) return true;
    // The search for the first value that is not finite reads the whole.
    const evaluates = program instanceof EvalProgram || program instanceof EvalTrainProgram;
    return evaluates && this.options.debug !== 'nan';
  }

  /** Tells programs of checkpoints that have become whole. */
  async #tellWhole(run: Run): Promise<void> {
    for (const checkpoint of run.takeWhole())
      for (const program of this.programs)
        await this.#attempt(run, program, () => this.#act(program, run, 'onCheckpoint', checkpoint));
  }

  /** Calls a hook, if the program has it, as its phase of the profile; waits for all that it measures. */
  async #act<H extends Hook>(
    program: Program,
    run: Run,
    hook: H,
    ...args: Rest<H>
  ): Promise<Awaited<ReturnType<NonNullable<Program[H]>>> | undefined> {
    if (program[hook] === undefined) return undefined;
    const call = program[hook].bind(program) as (...all: readonly unknown[]) => Promise<never>;
    return timed(this.options, program.name === CHECKPOINTS ? 'save_stall' : 'evaluation', async () => {
      try {
        const { memory, split } = run.parts.state;
        if (split === undefined || !this.#readsParts(program)) await memory?.toHost();
        return await phase(this.options, program.phase ?? program.name, () =>
          call(run.viewOf(program.name), ...args),
        );
      } finally {
        await run.settled();
      }
    });
  }

  /** @returns false if a signal stopped the act @throws its error, unless it is told and training goes on */
  async #attempt(run: Run, program: Program, act: () => Promise<unknown>): Promise<boolean> {
    try {
      return await run.unlessStopped(act);
    } catch (cause) {
      if (!run.isTraining || program.mustSucceed) throw cause;
      const goesOn = this.task.hp.train.hp.onEvalError === 'continue';
      run.reporter.failed(program.name, run.step, errorOf(cause), goesOn);
      if (!goesOn) throw cause;
      return true;
    }
  }
}

/** Names of the programs that are due at a step. */
export const namesDueAt = (programs: readonly Program[], step: number, isLast: boolean): string[] =>
  programs.filter((program) => program.isDue(step, isLast)).map(({ name }) => name);

type Hook = 'start' | 'run' | 'onCheckpoint' | 'onError' | 'end';

/** Arguments of a hook behind the run. */
type Rest<H extends Hook> = Parameters<NonNullable<Program[H]>> extends [unknown, ...infer R] ? R : never;

const errorOf = (cause: unknown): Error => (cause instanceof Error ? cause : new Error(String(cause)));
