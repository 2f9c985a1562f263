/** @file The list of a job's programs: the same in training and in jobs on a checkpoint, as far as the mode goes. */
import { build, ConfigError } from '../hparams/index.js';
import type { JsonValue } from '../inputs/index.js';
import {
  decodedDatasets,
  decodesDatasets,
  evaluatedDatasets,
  evaluatesDatasets,
  inferredDatasets,
  type JobOptions,
} from '../runs/index.js';
import { type Program, SaveBest, type SingleTask } from '../tasks/index.js';
import { BestCheckpoints } from './bestCheckpoints.js';
import { DecodeProgram } from './decodeProgram.js';
import { namesDueAt } from './duePrograms.js';
import { EarlyStopProgram } from './earlyStopProgram.js';
import { EvalProgram, EvalTrainProgram } from './evalProgram.js';
import { InferProgram } from './infer/inferProgram.js';
import { type ProgramDataset, TRAIN } from './programDataset.js';
import type { ProgramInputs } from './programInputs.js';
import { CHECKPOINTS } from './run.js';
import { TrackProgram } from './trackProgram.js';

/**
 * Evaluations and decodes, or the experiment's programs in their place, the task's own programs, in training the tracking of
 * a metric of theirs, and the early stopping function, in this order. A job that infers has programs for this alone.
 *
 * @throws ConfigError for a model that can't be decoded, for two programs of one name, and for a tracked metric of a program
 *   that is not among them; where `--mode=train` leaves it out, nothing is tracked.
 */
export function programsOf(options: JobOptions, task: SingleTask): Program[] {
  if (options.mode === 'infer')
    return checked(inferredDatasets(options).map((dataset) => new InferProgram(options, task, dataset)));
  const { train, earlyStoppingFn } = task.hp;
  const { evalSkipTrain, trackMetric, programs } = train.hp;
  const trains = options.mode.startsWith('train');
  const all: Program[] = [
    ...(trains && !evalSkipTrain ? [new EvalTrainProgram(train)] : []),
    ...evaluatedDatasets(options).map((dataset) => new EvalProgram(train, dataset)),
    ...(evaluatesDatasets(options) ? build([...(options.evalPrograms ?? [])]) : []),
    ...decodedDatasets(options).map((dataset) => new DecodeProgram(task, dataset)),
    ...(decodesDatasets(options) ? build([...(options.decodePrograms ?? [])]) : []),
    ...programs,
  ];
  const isTracked =
    trains &&
    trackMetric !== null &&
    (options.mode !== 'train' || all.some(({ name }) => name === trackMetric.hp.evaluation));
  const list = [
    ...all,
    ...(isTracked ? [new TrackProgram(trackMetric, all)] : []),
    ...(earlyStoppingFn === null ? [] : [new EarlyStopProgram(earlyStoppingFn, train, all)]),
    ...(trains && train.hp.checkpointPolicies.some((each) => each instanceof SaveBest)
      ? [new BestCheckpoints(options, task, all)]
      : []),
  ];
  return checked(list);
}

/** @throws ConfigError for two programs of one name */
function checked(programs: Program[]): Program[] {
  const names = [TRAIN, CHECKPOINTS, ...programs.map(({ name }) => name)];
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice === undefined) return programs;
  throw new ConfigError(`Two programs are called '${twice}': give each dataset and program its own name.`);
}

/** What an earlier process has left: the names of pending programs, and the states of programs by name. */
export interface LeftOver {
  readonly pending: readonly string[];
  readonly positions: Readonly<Record<string, JsonValue>>;
}

/** Gives programs the states that an earlier process has left. */
export function restoreStates(
  programs: readonly Program[],
  { positions }: Pick<LeftOver, 'positions'>,
): void {
  for (const program of programs) {
    const state = positions[program.name];
    if (state !== undefined) program.setState?.(state);
  }
}

/** Names of the programs that run before the first step; a finished run that is started again shows its results. */
export function pendingAt(
  programs: readonly Program[],
  { step, isLast }: { readonly step: number; readonly isLast: boolean },
  leftOver?: LeftOver,
): string[] {
  if (isLast) return namesDueAt(programs, step, true);
  return programs.map(({ name }) => name).filter((name) => leftOver?.pending.includes(name));
}

/** The datasets of evaluations among programs. */
export function evaluationsAmong(programs: readonly Program[], inputs: ProgramInputs): ProgramDataset[] {
  return programs.flatMap((each) =>
    each instanceof EvalProgram ? [inputs.of(each.name, each.dataset)] : [],
  );
}

/** Checks the datasets of evaluations and decodes before the first step. @throws as `ProgramDataset.check` */
export function checkDatasets(programs: readonly Program[], inputs: ProgramInputs): void {
  for (const each of programs)
    if (each instanceof EvalProgram || each instanceof DecodeProgram)
      inputs.of(each.name, each.dataset).check();
}
