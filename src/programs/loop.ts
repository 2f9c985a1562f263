/**
 * @file The loop of a job, in Pax's order: evaluate, decode, stop early, save, stop, step; at the end, save. It knows no program
 * but that which takes steps: saving is one of the others. A loop that hangs is given up.
 */
import type { StrayFailures } from '../system/index.js';
import type { Program } from '../tasks/index.js';
import type { DuePrograms } from './duePrograms.js';
import type { Run } from './run.js';

/** Parts of the loop. */
export interface Loop {
  readonly run: Run;
  /** Takes steps; absent in a job on a checkpoint. */
  readonly train?: Program;
  /** Programs between steps; a resumed run starts with the pending ones. */
  readonly programs: DuePrograms;
  readonly strays: StrayFailures;
  /** Rejected where the run hangs. */
  readonly hung?: Promise<never>;
}

/** Runs programs, and trains until the last step, a signal, a program that ends training, or an error. */
export async function runLoop(loop: Loop): Promise<void> {
  const { run, programs, strays, hung } = loop;
  strays.listen();
  try {
    const running = runPrograms(loop);
    await (hung === undefined ? running : Promise.race([running, hung]));
  } catch (error) {
    await programs.fail(run, error);
    throw error;
  } finally {
    strays.close();
  }
}

async function runPrograms({ run, train, programs, strays }: Loop): Promise<void> {
  await strays.during(() => programs.start(run));
  for (;;) {
    await strays.during(() => programs.run(run));
    if (run.isStopped || run.ended !== undefined || !train?.isDue(run.step, false)) break;
    await train.run(run.viewOf(train.name));
  }
  await strays.during(() => programs.end(run));
}
