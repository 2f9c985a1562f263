/** @file Programs that run between training steps, and the base of users' own (paxml's programs.Program). */
import { z } from 'zod';
import { Configurable } from '../hparams/index.js';
import { directoryName, type JsonValue } from '../inputs/index.js';
import type { SummaryValue } from '../summaries/index.js';
import type { WeightedValues } from './metrics.js';

/** A run as its programs see it. */
export interface ProgramRun {
  /** The job's directory, `--job_log_dir`: a program may keep files of its own there. */
  readonly directory: string;
  /** Finished training steps. */
  readonly step: number;
  /** Views of every variable by path: float32, row-major. Not to be written to. */
  readonly params: Readonly<Record<string, Float32Array>>;
  /** Metrics of the newest evaluation of a program (`eval_test_<dataset>`), if any. */
  metrics(program: string): WeightedValues | undefined;
  /** Writes a line to the console. */
  tell(line: string): void;
  /** Ends training at this step as at its last one: programs that are due at the end run, and the state is saved. */
  endTraining(reason: string): void;
  /** @throws InterruptedError once a signal asks the run to stop; the program then runs again when training is resumed. */
  throwIfStopped(): void;
}

/** A participant of a training run. */
export interface Program<Run = ProgramRun> {
  /** Its `program` in metrics.jsonl, and its folder in `summaries`. */
  readonly name: string;
  /** Its row in the profile; its name where absent. */
  readonly phase?: string;
  /** Whether it runs when training has reached `step`. @param isLast whether training ends there */
  isDue(step: number, isLast: boolean): boolean;
  /** Runs at a step that it is due at. @returns its summaries by tag, if any */
  run(run: Run): Promise<Readonly<Record<string, SummaryValue>> | undefined>;
  /** State for resumed runs, as JSON; checkpoints keep it. */
  getState?(): JsonValue | undefined;
  setState?(state: JsonValue): void;
  close(): Promise<void>;
}

/** A program that experiments add to `task.train.programs`. */
export abstract class BaseProgram
  extends Configurable.with({
    name: directoryName.describe('Name in metrics.jsonl, messages and the folder of summaries.'),
    intervalSteps: z
      .int()
      .positive()
      .nullable()
      .default(null)
      .describe('Steps between runs, the last of which is at the end; null: at the end only.'),
  })
  implements Program
{
  static override readonly isAbstract = true;
  get name(): string {
    return this.hp.name;
  }

  isDue(step: number, isLast: boolean): boolean {
    const { intervalSteps } = this.hp;
    return isLast || (intervalSteps !== null && step % intervalSteps === 0);
  }

  abstract run(run: ProgramRun): Promise<Readonly<Record<string, SummaryValue>> | undefined>;

  getState(): JsonValue | undefined {
    return undefined;
  }

  setState(_state: JsonValue): void {}

  async close(): Promise<void> {}
}
