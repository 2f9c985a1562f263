/** @file The training loop, in Pax's order: save, stop, step, evaluate, decode, stop early; at the end, save. */
import type { StrayFailures } from '../system/index.js';
import type { Program } from '../tasks/index.js';
import type { CheckpointProgram } from './checkpointProgram.js';
import type { DuePrograms } from './duePrograms.js';
import type { Run } from './run.js';

/** Parts of the loop. */
export interface Loop {
  readonly run: Run;
  readonly train: Program<Run>;
  readonly checkpoints: CheckpointProgram;
  /** Programs between steps; a resumed run starts with the pending ones. */
  readonly programs: DuePrograms;
  readonly strays: StrayFailures;
}

/** Trains until the last step, a signal, a program that ends training, or an error; saves the state in every case. */
export async function runLoop({ run, train, checkpoints, programs, strays }: Loop): Promise<void> {
  strays.listen();
  try {
    for (;;) {
      await strays.during(() => programs.run(run));
      if (checkpoints.isDue(run.step)) await checkpoints.run();
      if (run.isStopped || run.ended !== undefined || !train.isDue(run.step, false)) break;
      await train.run(run);
    }
    await checkpoints.finish();
  } catch (error) {
    await checkpoints.saveAfterError(run);
    throw error;
  } finally {
    strays.close();
  }
}
