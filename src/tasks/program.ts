/** @file Programs that run between training steps, and the base of users' own (paxml's programs.Program). */
import { z } from 'zod';
import type { HostTensor } from '../compiler/index.js';
import { type Config, Configurable } from '../hparams/index.js';
import {
  type BaseInput,
  directoryName,
  type InputState,
  type JsonValue,
  type Skipped,
} from '../inputs/index.js';
import type { SummaryValue } from '../summaries/index.js';
import type { Decode } from './decode.js';
import type { BaseInferenceRunner } from './inference.js';
import type { WeightedValues } from './metrics.js';
import type { DecodeResult, EvalResult, InferResult } from './results.js';

/** Settings of one evaluation or decode. */
export interface DecodeSettings {
  /**
   * Whether the moving average takes the place of the present parameters. Default: `evalUseEmaStates` or
   * `decodeUseEmaStates` of the task.
   */
  readonly useEmaStates?: boolean | undefined;
}

/** Settings of one decode of data. */
export interface DataDecodeSettings extends DecodeSettings {
  /** How to decode, by the task's way; the same function for the same way. Default: `task.decode`. */
  readonly decode?: ((own: Decode) => Decode) | undefined;
}

/** Settings of one inference. */
export interface InferSettings extends DecodeSettings {
  /** The outputs; the same object for the same ones. Default: those of the task's `inferWriter`. */
  readonly runner?: BaseInferenceRunner | undefined;
}

/** Settings of one evaluation. */
export interface EvaluateSettings extends DecodeSettings {
  /** Where data that goes on (`resetForEval` false) begins: the `end` of an earlier result. Default: at the first batch. */
  readonly from?: InputState | null | undefined;
}

/** A position in an inference: behind so many batches and examples. */
export interface InferPosition {
  readonly batches: number;
  readonly examples: number;
  /** That of the data. */
  readonly state: InputState;
}

/** Outputs of the inference runner for a batch. */
export interface InferredBatch {
  /** By name, each with the batch's rows in front. */
  readonly outputs: Readonly<Record<string, HostTensor>>;
  /** The rows that are examples; others are padding. */
  readonly rows: readonly number[];
  /** Numbers of these in the data: those that the batch has, else counted from 0. */
  readonly exampleIds: readonly number[];
  /** Behind the batch. */
  readonly position: InferPosition;
}

/** Outputs for data, computed while they are read. */
export interface Inference {
  /** Digest of the data, equal for equal data. */
  readonly digest: string;
  /** Differences of the data from its record, reported once. */
  readonly changes: string | undefined;
  /**
   * Batch after batch, as many as `evalLoopNumBatches` says; null: all.
   *
   * @param from a position of an earlier inference of this data; by default the first batch.
   * @throws InterruptedError as `throwIfStopped`; JobError for data without a batch or an end.
   */
  batches(from?: InferPosition | null): AsyncIterable<InferredBatch>;
  /** Broken examples left out since the last call. */
  takeSkipped(): Skipped;
}

/** Data that a program reads: a config, which the job opens once and closes, or an input that the program closes itself. */
export type ProgramInput = Config<BaseInput> | BaseInput;

/** A job as one of its programs sees it: training, or a job on a checkpoint (`--mode=eval`, `--mode=decode`). */
export interface ProgramRun {
  /** The job's directory, `--job_log_dir`: a program may keep files of its own there. */
  readonly directory: string;
  /** Whether the job trains; else it has one checkpoint, and `save` is an error. */
  readonly isTraining: boolean;
  /** Finished training steps. */
  readonly step: number;
  /** The checkpoint that a job which does not train has read. */
  readonly checkpoint?: RestoredCheckpoint | undefined;
  /** Views of every variable by path: float32, row-major. Not to be written to. */
  readonly params: Readonly<Record<string, Float32Array>>;
  /**
   * Newest metrics of a program (`eval_test_<dataset>`), if any; those of `train` are the means of its newest summary, and
   * `loss` with the number of its steps.
   */
  metrics(program: string): WeightedValues | undefined;
  /** The step of the newest metrics of a program, if any. */
  metricsStep(program: string): number | undefined;
  /**
   * Evaluates data at the present step, as the job evaluates its datasets: the compiled step, `evalMetrics` and
   * `evalLoopNumBatches`. `train` is the next training batch, which is not taken.
   *
   * @throws InterruptedError as `throwIfStopped`; EndOfData for `train` where no batch follows; JobError for data without a
   *   batch; ConfigError, InputError for data that does not fit the model or training.
   */
  evaluate(input: ProgramInput | 'train', settings?: EvaluateSettings): Promise<EvalResult>;
  /**
   * Decodes data at the present step, as the job decodes its datasets, but writes no file.
   *
   * @throws as `evaluate`; ConfigError for a model that can't decode.
   */
  decode(input: ProgramInput, settings?: DataDecodeSettings): Promise<DecodeResult>;
  /**
   * Outputs of an inference runner, by default the task's (`inferWriter`), for data at the present step.
   *
   * @throws as `evaluate`; ConfigError for outputs that the model lacks or that are not of the batch's rows.
   */
  infer(input: ProgramInput, settings?: InferSettings): Promise<Inference>;
  /** Makes a result this program's: on the console, in metrics.jsonl and TensorBoard, and by `metrics` for other programs. */
  report(result: EvalResult | DecodeResult | InferResult): void;
  /**
   * Asks for a checkpoint at this step, written before the next one is taken. `saveMaxToKeep` counts it.
   *
   * @param reason told on the console.
   * @throws JobError in a job that does not train.
   */
  save(reason?: string): void;
  /**
   * As `save`, and makes the checkpoint the best one of the run, which is kept until there is a better one, and which
   * `--checkpoint=best` names.
   *
   * @param metric by which it is the best, for messages. @param value of the metric
   * @throws RangeError for a value that is not finite.
   */
  saveBest(metric: string, value: number): void;
  /** Writes a line to the console. */
  tell(line: string): void;
  /**
   * Ends training at this step as at its last one: programs that are due at the end run, and the state is saved. In a job
   * that does not train it only tells the reason.
   */
  endTraining(reason: string): void;
  /** @throws InterruptedError once a signal asks the job to stop; the program then runs again when training is resumed. */
  throwIfStopped(): void;
}

/** A checkpoint that a job has read. */
export interface RestoredCheckpoint {
  /** Its directory. */
  readonly path: string;
  /** When it was saved, as ISO 8601. */
  readonly savedAt: string;
}

/** A checkpoint that is whole on the disk. */
export interface WholeCheckpoint {
  readonly step: number;
  /** Its directory. */
  readonly path: string;
}

/**
 * A participant of a job. A job ends with `end`, or with `onError` where it fails; `close` is last in both cases. Errors of
 * `run` and `onCheckpoint` are those of an evaluation (`onEvalError`); those of `start` and `end` fail the job.
 */
export interface Program {
  /** Its `program` in metrics.jsonl, and its folder in `summaries`. */
  readonly name: string;
  /** Its row in the profile; its name where absent. */
  readonly phase?: string;
  /** Whether an error of `run` or `onCheckpoint` fails the job, whatever `onEvalError` says. */
  readonly mustSucceed?: boolean;
  /** Whether it runs when training has reached `step`. @param isLast whether training ends there */
  isDue(step: number, isLast: boolean): boolean;
  /** Runs once the state is restored, before the first step of this process. */
  start?(run: ProgramRun): Promise<void>;
  /** Runs at a step that it is due at. @returns its summaries by tag, if any */
  run(run: ProgramRun): Promise<Readonly<Record<string, SummaryValue>> | undefined>;
  /** Runs between steps once a checkpoint is whole, when training may be some steps ahead; that of the end comes after `end`. */
  onCheckpoint?(run: ProgramRun, checkpoint: WholeCheckpoint): Promise<void>;
  /**
   * Runs where the job fails, after the state was saved, if it could be. The error stays that of the job; an error of the
   * hook is told beside it.
   */
  onError?(run: ProgramRun, error: Error): Promise<void>;
  /** Runs once at the end, whatever ended training: its last step, a signal or a program. The state is saved after it. */
  end?(run: ProgramRun): Promise<void>;
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

  async start(_run: ProgramRun): Promise<void> {}

  abstract run(run: ProgramRun): Promise<Readonly<Record<string, SummaryValue>> | undefined>;

  async onCheckpoint(_run: ProgramRun, _checkpoint: WholeCheckpoint): Promise<void> {}

  async onError(_run: ProgramRun, _error: Error): Promise<void> {}

  async end(_run: ProgramRun): Promise<void> {}

  getState(): JsonValue | undefined {
    return undefined;
  }

  setState(_state: JsonValue): void {}

  async close(): Promise<void> {}
}
