/** @file Checkpoints of a training run as a program: at its start, at intervals, where programs ask for one, at its end. */
import { join } from 'node:path';
import {
  type Checkpointer,
  checkpointName,
  type SaveOptions,
  type StateWriters,
  type TrainState,
} from '../checkpoints/index.js';
import { type JobOptions, slowUnit } from '../runs/index.js';
import type { Program, ProgramRun, WholeCheckpoint } from '../tasks/index.js';
import { savedLine } from './reporter.js';
import { CHECKPOINTS } from './run.js';

/** Components of checkpoints. */
export interface CheckpointParts {
  readonly options: Pick<JobOptions, 'checkpoint' | 'progress' | 'time'>;
  readonly numTrainSteps: number;
  readonly checkpointer: Checkpointer;
  readonly state: TrainState;
  /** Ranks that hold the state in parts. */
  readonly writers?: StateWriters | undefined;
  /** Whether the state is of a checkpoint of this run; the newest may have been skipped as broken. */
  readonly isRestored: boolean;
  /** Whether the state is that of a completed step. */
  readonly isWhole: () => boolean;
  /** Parts of a checkpoint beside the state. */
  readonly saved: () => SaveOptions;
  /** Takes checkpoints that are on the disk. */
  readonly announce: (checkpoint: WholeCheckpoint) => void;
}

/** Saves the state of a training run. The last program, so that all others have run at the step that it saves. */
export class CheckpointProgram implements Program {
  readonly name = CHECKPOINTS;
  /** Training must not go on for hours that nothing keeps. */
  readonly mustSucceed = true;
  /** The step saved last, or restored. */
  #saved: number | undefined;
  /** The save in progress. */
  #saving: Promise<void> = Promise.resolve();

  constructor(private readonly parts: CheckpointParts) {
    if (parts.isRestored) this.#saved = parts.state.step;
  }

  /** Whether to save at this step, before the next one is taken. */
  isDue(step: number, isLast: boolean): boolean {
    return this.#saved !== step && (isLast || this.parts.checkpointer.shouldSave(step));
  }

  /** A run without a checkpoint saves its first state. */
  async start(run: ProgramRun): Promise<void> {
    if (this.isDue(run.step, false)) run.save();
  }

  /** Starts saving the state; a worker writes it while training continues. */
  async run({ step }: Pick<ProgramRun, 'step'>): Promise<undefined> {
    if (this.#saved === step) return;
    await this.#save();
    this.#saved = step;
  }

  /** Saves the last state, and waits until it is on the disk. @throws CheckpointError where it can't be written */
  async end(run: Pick<ProgramRun, 'step'>): Promise<void> {
    await this.run(run);
    await slowUnit(this.parts.options, 'save', () => this.#saving);
  }

  /** Saves the state after an error if it is that of a whole step. Never throws, since the user must see the error itself. */
  async onError(run: Pick<ProgramRun, 'step' | 'tell'>): Promise<void> {
    const { isWhole, options, numTrainSteps } = this.parts;
    const { step } = run;
    // An earlier save may have failed, but this one may work.
    await this.#saving.catch(() => {});
    let problem = `the step after ${step} failed half-way, so the state is that of no step`;
    if (isWhole()) {
      try {
        await this.#save();
        await this.#saving;
        return run.tell(savedLine(options, step, numTrainSteps));
      } catch (error) {
        problem = (error as Error).message;
      }
    }
    run.tell(`Not saved at step ${step}: ${problem}. ${this.#newest()}`);
  }

  async close(): Promise<void> {
    await this.parts.checkpointer.close();
  }

  async #save(): Promise<void> {
    const { options, checkpointer, state, writers, saved, announce } = this.parts;
    const { step } = state;
    // A restart may go on from this step.
    options.time?.sign(step);
    if (!(await slowUnit(options, 'save', () => checkpointer.save(state, { ...saved(), writers })))) return;
    const path = join(checkpointer.directory, checkpointName(step));
    this.#saving = checkpointer.waitUntilFinished().then(() => announce({ step, path }));
    // The error goes to the one who waits for the last checkpoint.
    this.#saving.catch(() => {});
  }

  #newest(): string {
    try {
      const newest = this.parts.checkpointer.latestStep();
      if (newest !== undefined) return `The newest checkpoint is that of step ${newest}.`;
    } catch {
      // The directory can't be listed either.
    }
    return 'There is no checkpoint.';
  }
}
