/** @file Checkpoints of a training run: saved at intervals and at its end. */
import type { Checkpointer } from '../checkpoints/index.js';
import { type JobOptions, phase } from './options.js';
import { type Saved, savedWith } from './progress.js';
import type { Run } from './run.js';

/** Saves the state of a training run. */
export class CheckpointProgram {
  /** The step saved last, or restored. */
  #saved: number | undefined;

  /** @param restored whether the state is of a checkpoint of this run; the newest may have been skipped as broken. */
  constructor(
    private readonly options: JobOptions,
    readonly checkpointer: Checkpointer,
    private readonly source: Saved,
    restored: boolean,
  ) {
    if (restored) this.#saved = source.state.step;
  }

  /** Whether to save at this step, before the next one is taken: at intervals, and the best value of a tracked metric. */
  isDue(step: number): boolean {
    const isBest = this.source.tracked?.best?.step === step;
    return this.#saved !== step && (isBest || this.checkpointer.shouldSave(step));
  }

  /** Starts saving the state; a worker writes it while training continues. */
  async run(): Promise<void> {
    const { step } = this.source.state;
    if (this.#saved === step) return;
    await phase(this.options, 'checkpoints', () => this.#save());
    this.#saved = step;
  }

  /** Saves the last state, and waits until it is on the disk. @throws CheckpointError where it can't be written */
  async finish(): Promise<void> {
    await this.run();
    await phase(this.options, 'checkpoints', () => this.checkpointer.waitUntilFinished());
  }

  /**
   * Saves the state after an error if it is that of a whole step. Never throws, since the user must see the error
   * itself.
   */
  async saveAfterError({ reporter, step }: Run): Promise<void> {
    // An earlier save may have failed, but this one may work.
    await this.checkpointer.waitUntilFinished().catch(() => {});
    let problem = `the step after ${step} failed half-way, so the state is that of no step`;
    if (this.source.program.isWhole) {
      try {
        await this.#save();
        await this.checkpointer.waitUntilFinished();
        return reporter.saved(step);
      } catch (error) {
        problem = (error as Error).message;
      }
    }
    reporter.tell(`Not saved at step ${step}: ${problem}. ${this.#newest()}`);
  }

  #save(): Promise<boolean> {
    return this.checkpointer.save(this.source.state, savedWith(this.source));
  }

  #newest(): string {
    try {
      const newest = this.checkpointer.latestStep();
      if (newest !== undefined) return `The newest checkpoint is that of step ${newest}.`;
    } catch {
      // The directory can't be listed either.
    }
    return 'There is no checkpoint.';
  }
}
