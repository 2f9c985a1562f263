/** @file Options of a job. */
import { join } from 'node:path';
import type { Ranks } from '../collectives/index.js';
import type {
  Bfloat16Products,
  CompileOptions,
  EagerDevice,
  Engine,
  Profiler,
  RankCalls,
} from '../compiler/index.js';
import type { Config } from '../hparams/index.js';
import type { BaseInput, BaseInputSpecsProvider } from '../inputs/index.js';
import type { StopSignal } from '../system/index.js';
import type { BaseExecutor, BaseProgram, Mesh, SingleTask } from '../tasks/index.js';
import type { TimeUse, WallTime } from './goodput.js';

/** `train_and_eval` and `train_and_decode` evaluate while they train; the latter decodes as well. */
export type JobMode =
  | 'train'
  | 'eval'
  | 'decode'
  | 'decode_once'
  | 'infer'
  | 'train_and_eval'
  | 'train_and_decode';

/** Notes of what a job does, for whoever looks for a hang. */
export interface ProgressNotes {
  /**
   * Runs a unit of work; its end is progress.
   *
   * @param patience how many times the usual limit it may take, as a save does that waits for a disk. Default 1.
   */
  during<T>(unit: string, act: () => Promise<T>, patience?: number): Promise<T>;
  /** Notes that a part of the present unit is finished: a batch, a token. */
  finished(): void;
}

/** Options for compiling a run's programs, and the peak that they are compared with. */
export interface EngineOptions {
  readonly engine?: Engine;
  readonly device?: EagerDevice;
  readonly numThreads?: number | undefined;
  /** How products of bfloat16 are made, as the run has begun; by default, as is faster on this machine. */
  readonly bfloat16Products?: Bfloat16Products | undefined;
  /** Peak of the machine in 1e12 FLOP/s; measured if absent. */
  readonly peakTflops?: number | undefined;
  /** Collects the times of programs. */
  readonly profiler?: Profiler | undefined;
  /** Takes the sentence that explains which engine `auto` has chosen. */
  readonly explain?: ((sentence: string) => void) | undefined;
  readonly progress?: ProgressNotes | undefined;
  /** Counts the wall time of a process that trains. */
  readonly time?: WallTime | undefined;
}

/** Activations and gradients to print while training. */
export interface TapOptions {
  /** Globs of taps and of paths of layers: `*` within a name, `**` across them. */
  readonly patterns: readonly string[];
  /** Whether to read the taps in a step, counted from 1. */
  readonly isTapped: (step: number) => boolean;
  /** Whether to write values to files too. */
  readonly values: boolean;
}

/** The ranks of a job. */
export interface JobRanks extends Ranks {
  /** They as steps call them, where they hold parts of the variables. */
  readonly steps?: RankCalls | undefined;
  /** The library by which they call MPI. */
  readonly library?: string;
  /** Names of their machines, by rank. */
  hosts?: readonly string[];
  /** The signals that this one gets. */
  readonly stop?: StopSignal;
  /** Whether rank 0 has ended training, so that all may leave. */
  hasEnded?: boolean;
}

/** An experiment's configs with the settings of one run. */
export interface JobOptions extends EngineOptions {
  /** Full name of the experiment. */
  readonly name: string;
  readonly task: Config<SingleTask>;
  readonly datasets: readonly Config<BaseInput>[];
  readonly decodeDatasets: readonly Config<BaseInput>[];
  /** Programs in the place of evaluations, and of decodes. */
  readonly evalPrograms?: readonly Config<BaseProgram>[] | null | undefined;
  readonly decodePrograms?: readonly Config<BaseProgram>[] | null | undefined;
  readonly executor?: Config<BaseExecutor> | null | undefined;
  readonly inputSpecsProvider?: Config<BaseInputSpecsProvider> | null | undefined;
  /** File URL of the experiment's module, from which workers load custom input classes. */
  readonly moduleUrl: string;
  readonly jobLogDir: string;
  readonly mode: JobMode;
  /** The --set flags as written. */
  readonly overrides: readonly string[];
  /** Text of experiment_cls_vars.txt. */
  readonly classVars: string;
  readonly restorePreviousCheckpoint?: boolean;
  /** Seconds that evaluation and decoding wait for a checkpoint where no process trains. Default 0. */
  readonly waitSeconds?: number | undefined;
  /** Whether the decode modes evaluate, too. */
  readonly evalDuringDecode?: boolean | undefined;
  /** Whether training restores what fits of a checkpoint of other variables or slots, or only shows what would fit. */
  readonly restoreChanged?: 'apply' | 'dry_run' | undefined;
  /** Folder of `checkpoints` that old ones are moved to instead of being deleted. */
  readonly checkpointTodeleteSubdir?: string | undefined;
  /**
   * The checkpoint to evaluate, to decode or to train from: a step, `best` by the metric that training tracked, or the path
   * of another run or of one checkpoint, which another experiment may have written. Default: the newest.
   */
  readonly checkpoint?: number | string | undefined;
  readonly taps?: TapOptions | undefined;
  /** `nan`: the first step with a value that is not finite is an error; `eager`: layers run op by op, and may read values. */
  readonly debug?: 'nan' | 'eager' | undefined;
  /** Whether to write a profile at the end. */
  readonly profile?: boolean;
  /** The processes that train together; absent for one alone. */
  readonly ranks?: JobRanks | undefined;
  /** Where the ranks lie; absent: they share the rows of a batch, and all else each of them has whole. */
  readonly mesh?: Mesh | undefined;
}

/** Whether a job evaluates its datasets, or runs the programs in their place. */
export function evaluatesDatasets({
  mode,
  evalDuringDecode,
}: Pick<JobOptions, 'mode' | 'evalDuringDecode'>): boolean {
  return (
    mode === 'eval' || mode === 'train_and_eval' || mode === 'train_and_decode' || evalDuringDecode === true
  );
}

/** Whether a job decodes its datasets, or runs the programs in their place. */
export function decodesDatasets({ mode }: Pick<JobOptions, 'mode'>): boolean {
  return mode.endsWith('decode') || mode === 'decode_once';
}

/** The datasets that a job evaluates. */
export function evaluatedDatasets(
  options: Pick<JobOptions, 'mode' | 'datasets' | 'evalDuringDecode' | 'evalPrograms'>,
): Config<BaseInput>[] {
  const evaluates = evaluatesDatasets(options) && !options.evalPrograms;
  return evaluates ? options.datasets.filter((dataset) => !dataset.isTraining) : [];
}

/** The datasets that a job decodes. */
export function decodedDatasets(
  options: Pick<JobOptions, 'mode' | 'decodeDatasets' | 'decodePrograms'>,
): readonly Config<BaseInput>[] {
  return decodesDatasets(options) && !options.decodePrograms ? options.decodeDatasets : [];
}

/** The datasets whose outputs a job writes: those that are decoded, or, where there are none, evaluated. */
export function inferredDatasets({
  mode,
  datasets,
  decodeDatasets,
}: Pick<JobOptions, 'mode' | 'datasets' | 'decodeDatasets'>): readonly Config<BaseInput>[] {
  if (mode !== 'infer') return [];
  return decodeDatasets.length > 0 ? decodeDatasets : datasets.filter((dataset) => !dataset.isTraining);
}

/** The directory of a job's checkpoints. */
export function checkpointDirectory({ jobLogDir }: Pick<JobOptions, 'jobLogDir'>): string {
  return join(jobLogDir, 'checkpoints');
}

/** Whether a checkpoint is the path of another run, rather than one of the job's directory. */
export function isOfOtherRun(checkpoint: JobOptions['checkpoint']): checkpoint is string {
  return typeof checkpoint === 'string' && checkpoint !== 'best';
}

/** Whether a checkpoint is a given one of the job's directory, to which training goes back. */
export function isOfOwnRun(checkpoint: JobOptions['checkpoint']): checkpoint is number | 'best' {
  return checkpoint !== undefined && !isOfOtherRun(checkpoint);
}

/**
 * Options of the compiler.
 *
 * @param name of the program, for messages and profiles.
 * @param runs expected of it, by which `auto` chooses the engine; see `CompileOptions`.
 */
export function compileOptions(options: EngineOptions, name: string, runs?: number): CompileOptions {
  const { engine, device, numThreads, bfloat16Products, profiler, explain } = options;
  return {
    name,
    runs,
    explain,
    bfloat16Products,
    ...(engine !== undefined && { engine }),
    ...(device !== undefined && { device }),
    ...(numThreads !== undefined && { numThreads }),
    ...(profiler !== undefined && { profiler }),
  };
}

/** How many times the usual limit a compilation or a save may take. */
const PATIENCE = 10;

/** Runs `act` as a unit of progress whose length no step tells: it waits for a compiler or a disk. */
export function slowUnit<T>({ progress }: EngineOptions, unit: string, act: () => Promise<T>): Promise<T> {
  return progress === undefined ? act() : progress.during(unit, act, PATIENCE);
}

/** Runs `act` as a phase of the profile, if there is one, and as a unit of progress. */
export function phase<T>(
  { profiler, progress }: EngineOptions,
  name: string,
  act: () => Promise<T>,
): Promise<T> {
  const timed = () => (profiler === undefined ? act() : profiler.phase(name, act));
  return progress === undefined ? timed() : progress.during(name, timed);
}

/** Counts the time of `act` for a use, where a process trains. */
export function timed<T>({ time }: EngineOptions, use: TimeUse, act: () => Promise<T>): Promise<T> {
  return time === undefined ? act() : time.during(use, act);
}
