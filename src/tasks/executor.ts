/** @file Executors: the order in which training takes steps and runs programs (paxml's executors). */
import { Configurable } from '../hparams/index.js';
import type { ProgramRun } from './program.js';

/** Training as its executor sees it. */
export interface ExecutedJob {
  readonly run: ProgramRun;
  /**
   * Runs the programs that are due: evaluations, decodes, programs of the task, checkpoints.
   *
   * @returns whether training goes on: no signal has come, no program has ended it, and steps are left.
   */
  runPrograms(): Promise<boolean>;
  /** Takes steps up to the next one at which a program may be due, one at least. @throws RangeError where none is left */
  train(): Promise<void>;
}

/** Runs training from the restored state to its end. A base class of executors. */
export abstract class BaseExecutor extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** An executor that returns while steps are left ends training there. */
  abstract execute(job: ExecutedJob): Promise<void>;
}

/** Programs, then steps, in turns (paxml's DefaultExecutor). */
export class DefaultExecutor extends BaseExecutor.with({}) {
  override async execute(job: ExecutedJob): Promise<void> {
    while (await job.runPrograms()) await job.train();
  }
}
