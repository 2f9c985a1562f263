/** @file Evaluation, decoding and inference of checkpoints, without training. */
import { CheckpointError, type Lease, leaseCheckpoint, listCheckpoints } from '../checkpoints/index.js';
import { build, ConfigError } from '../hparams/index.js';
import {
  checkpointDirectory,
  decodesDatasets,
  inferredDatasets,
  type JobOptions,
  keptProducts,
  machineOf,
  strayFailures,
  writeJobFiles,
} from '../runs/index.js';
import { type StopSignal, writeText } from '../system/index.js';
import type { Program, SingleTask } from '../tasks/index.js';
import { DuePrograms } from './duePrograms.js';
import { restoredWeights } from './evaluatedWeights.js';
import { followsTraining, mayFollow, nextCheckpoint } from './followTraining.js';
import { runToEnd } from './jobEnd.js';
import { pendingAt, programsOf, restoreStates } from './jobPrograms.js';
import { JobProgress } from './jobProgress.js';
import { runLoop } from './loop.js';
import { Measurements } from './measurements.js';
import { metricsOf, readProgress } from './progress.js';
import { Reporter } from './reporter.js';
import { type RestoredParams, restoreInto, restoreMapped } from './restoredParams.js';
import { Run, type RunParts } from './run.js';
import { writePostInit } from './stateFiles.js';
import { type FlatTrainState, paramsOf, type RestoredState } from './taskState.js';

/**
 * Evaluates a checkpoint on every evaluation dataset, or decodes it on every decode dataset; then the task's own programs run as
 * at the last step of training. `--mode=eval` and `--mode=decode` go on with the checkpoints of a run that trains, until it ends.
 */
export async function runCheckpointJob(given: JobOptions, stop: StopSignal): Promise<void> {
  const options: JobOptions = { ...given, ...keptProducts(given.jobLogDir) };
  checkDatasetsOf(options);
  const task = build(options.task);
  const { train } = task.hp;
  const { numTrainSteps, trackers } = train.hp;
  const useEma = train.usesEmaStates(options.mode === 'eval' ? 'eval' : 'decode');
  const record = new JobProgress(options);
  const interrupted = record.interrupted();
  // Asked before the checkpoint is chosen: of a run that has ended meanwhile, it is the last one.
  const follows = await mayFollow(options);
  const first = await firstCheckpoint(options, task, stop, interrupted);
  if (first === 'none left') return record.remove();
  const { state, memory, read } = await open({ ...options, checkpoint: first }, task, useEma, follows);
  const list = programsOf(options, task);
  writeJobFiles(options, await machineOf(options));
  if (decodesDatasets(options)) writePostInit(options, task);
  const reporter = new Reporter(options, { numTrainSteps, firstStep: state.step, trackers });
  const explained: JobOptions = { ...options, explain: (sentence) => reporter.tell(sentence) };
  const measurements = new Measurements(explained, task, restoredWeights(options, state, useEma));
  stop.postpone('leaving');
  const parts = { options, task, state, memory, list, reporter, stop, measurements, record, useEma };
  await runToEnd(options, reporter, [...list, measurements], async () => {
    await runOnCheckpoints(parts, read, interrupted);
    return { steps: 0 };
  });
}

/** Memory of parameters with those of the first checkpoint: of later ones, too, or a mapped file's where there are none. */
async function open(options: JobOptions, task: SingleTask, useEma: boolean, isReused: boolean) {
  if (!isReused) {
    const { state, ...read } = await restoreMapped(options, task, useEma);
    return { state, memory: undefined, read };
  }
  const memory = paramsOf(task);
  const read = await restoreInto(memory, options, useEma);
  return { state: memory, memory, read };
}

/** The checkpoint that a job begins with, as `--checkpoint` names it; undefined is the newest. */
async function firstCheckpoint(
  options: JobOptions,
  task: SingleTask,
  stop: StopSignal,
  interrupted: Interrupted | undefined,
): Promise<JobOptions['checkpoint'] | 'none left'> {
  const isThere = interrupted !== undefined && checkpointSteps(options).includes(interrupted.step);
  if (isThere && options.checkpoint === undefined && interrupted.pending.length > 0) return interrupted.step;
  if (!followsTraining(options)) return options.checkpoint;
  const { step, pending } = interrupted ?? { step: undefined, pending: [] };
  const isDone = step !== undefined && pending.length === 0;
  const next = await nextCheckpoint(options, stop, isDone ? step : undefined, leastSteps(options, task));
  if (next !== undefined || !isDone) return undefined;
  writeText(`The checkpoint of step ${step} is done already, and there is no later one.\n`);
  return 'none left';
}

const checkpointSteps = (options: JobOptions): number[] => [
  ...listCheckpoints(checkpointDirectory(options)).keys(),
];

/** Steps of the first checkpoint that a job takes which follows training. */
const leastSteps = ({ mode }: JobOptions, task: SingleTask): number =>
  mode === 'decode' ? task.hp.train.hp.decodeStartAfterNSteps : 0;

type Interrupted = NonNullable<ReturnType<JobProgress['interrupted']>>;

/** Parts of a job that are the same for all of its checkpoints. */
interface Parts extends Omit<RunParts, 'state'> {
  readonly options: JobOptions;
  readonly task: SingleTask;
  readonly list: readonly Program[];
  readonly state: RestoredState;
  /** That of the state, where later checkpoints take its place; absent in a job on one checkpoint. */
  readonly memory: FlatTrainState | undefined;
  readonly record: JobProgress;
  /** Whether the state is the average of the parameters. */
  readonly useEma: boolean;
}

/** Runs the programs with the restored checkpoint, and with later ones where the job follows training. */
async function runOnCheckpoints(
  parts: Parts,
  first: RestoredParams,
  interrupted: Interrupted | undefined,
): Promise<void> {
  const { state, record } = parts;
  for (let read: RestoredParams | undefined = first; read !== undefined; ) {
    const isSame = state.step === interrupted?.step && read.metadata.savedAt === interrupted.savedAt;
    const run: Run = await runOn(parts, read, isSame ? interrupted.pending : []);
    if (run.isStopped) return;
    read = run.wouldEnd ? undefined : await readNext(parts);
    if (parts.stop.received !== undefined) return;
  }
  record.remove();
}

/** Reads the next checkpoint of a job that follows training; undefined where there is none. */
async function readNext(parts: Parts): Promise<RestoredParams | undefined> {
  const { options, task, memory, reporter, stop, useEma } = parts;
  if (memory === undefined) return undefined;
  // Nobody comes back to a run that is at its end.
  const isAtEnd = memory.step >= task.hp.train.hp.numTrainSteps;
  const waiting = { ...options, ...(isAtEnd && { waitSeconds: 0 }) };
  for (let done = memory.step; ; ) {
    const next = await nextCheckpoint(waiting, stop, done);
    if (next === undefined) return undefined;
    try {
      return await restoreInto(memory, { ...options, checkpoint: next }, useEma);
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error;
      // Deleted meanwhile, or broken: a later one counts.
      reporter.tell(`The checkpoint of step ${next} is passed over: ${error.message}`);
      done = next;
    }
  }
}

/** Runs the programs once, on the state of one checkpoint, which is kept meanwhile. @param left those of an interrupted job; none: all */
async function runOn(parts: Parts, read: RestoredParams, left: readonly string[]): Promise<Run> {
  const { options, task, list, state, record } = parts;
  const { programs: own } = task.hp.train.hp;
  const run = new Run(parts, { path: read.path, savedAt: read.metadata.savedAt });
  // Evaluations begin with their first batch. What programs have kept in training is theirs here, too.
  const progress = own.length === 0 ? undefined : readProgress(read.progress, read.path);
  if (progress !== undefined) {
    restoreStates(own, progress);
    run.newest.restore(metricsOf(progress));
  }
  const due = pendingAt(list, { step: state.step, isLast: true });
  const pending = left.length === 0 ? due : due.filter((name) => left.includes(name));
  const note = (): void =>
    record.write({ step: state.step, savedAt: read.metadata.savedAt, pending: [...programs.pending] });
  const programs: DuePrograms = new DuePrograms(options, task, list, pending, note);
  const lease = tryLease(read.path);
  try {
    note();
    await runLoop({ run, programs, strays: strayFailures() });
  } finally {
    lease?.release();
  }
  return run;
}

/** Keeps a checkpoint from being deleted, if it is there still: its values are in memory. */
function tryLease(path: string): Lease | undefined {
  try {
    return leaseCheckpoint(path);
  } catch {
    return undefined;
  }
}

/** @throws ConfigError for an experiment without datasets for the mode */
function checkDatasetsOf(options: JobOptions): void {
  const { name, mode, datasets, decodeDatasets, evalPrograms, decodePrograms } = options;
  const [found, what] =
    mode === 'eval'
      ? [
          evalPrograms ?? datasets.filter((dataset) => !dataset.isTraining),
          'datasets() has none to evaluate (isTraining false)',
        ]
      : mode === 'infer'
        ? [
            inferredDatasets(options),
            'decodeDatasets() has none to infer, nor has datasets() one to evaluate (isTraining false)',
          ]
        : [decodePrograms ?? decodeDatasets, 'decodeDatasets() has none to decode'];
  if (found.length === 0) throw new ConfigError(`${name}: ${what}.`);
}
