/**
 * @file The loop of a job, in Pax's order: evaluate, decode, stop early, save, stop, step; at the end, save. It knows no program
 * but that which takes steps: saving is one of the others. A loop that hangs is given up.
 */

import { build } from '../hparams/index.js';
import type { StrayFailures } from '../system/index.js';
import {
  type BaseExecutor,
  DefaultExecutor,
  type ExecutedJob,
  type Program,
  type ProgramRun,
} from '../tasks/index.js';
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
  /** The order of steps and programs; by default in turns. */
  readonly executor?: BaseExecutor | undefined;
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

async function runPrograms(loop: Loop): Promise<void> {
  const { run, programs, strays, executor = build(DefaultExecutor.config()) } = loop;
  await strays.during(() => programs.start(run));
  const job = new LoopJob(loop);
  await executor.execute(job);
  await job.end(executor.constructor.name);
  await strays.during(() => programs.end(run));
}

const goesOn = ({ run, train }: Loop): boolean =>
  !run.isStopped && run.ended === undefined && train?.isDue(run.step, false) === true;

/** The job as its executor sees it. */
class LoopJob implements ExecutedJob {
  readonly run: ProgramRun;
  /** Whether steps were taken since programs last ran. */
  #hasTrained = false;

  constructor(private readonly loop: Loop) {
    this.run = loop.run.viewOf('executor');
  }

  async runPrograms(): Promise<boolean> {
    const { run, programs, strays } = this.loop;
    this.#hasTrained = false;
    await strays.during(() => programs.run(run));
    return goesOn(this.loop);
  }

  async train(): Promise<void> {
    const { run, train } = this.loop;
    if (train === undefined || !goesOn(this.loop))
      throw new RangeError(
        `The executor trains at step ${run.step}, where runPrograms() says that training ends.`,
      );
    this.#hasTrained = true;
    await train.run(run.viewOf(train.name));
  }

  /** Ends training where the executor has left off: programs that are due there run. */
  async end(executor: string): Promise<void> {
    const { run } = this.loop;
    const isEarly = goesOn(this.loop);
    if (isEarly) run.ended = `${executor} ended it`;
    if (isEarly || this.#hasTrained) await this.runPrograms();
  }
}
