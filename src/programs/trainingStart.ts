/** @file The start of training: its data, and a state that is restored or has initial values. */
import { Checkpointer } from '../checkpoints/index.js';
import type { InputSource } from '../inputs/index.js';
import { checkpointDirectory, type JobOptions, timed } from '../runs/index.js';
import type { SingleTask } from '../tasks/index.js';
import { forgetData } from './dataRecord.js';
import { InitFromCheckpoint } from './initFromCheckpoint.js';
import { ProgramDataset, TRAIN, trainingDataset } from './programDataset.js';
import { SplitState } from './ranks/splitState.js';
import { type Restored, restoreStart, takeData } from './startingCheckpoint.js';
import { heldByEngine, type TrainMemory, trainStateOf } from './taskState.js';

/** Checkpoints, data and state of a training run before its first step. */
export interface TrainingStart {
  readonly checkpointer: Checkpointer;
  readonly dataset: ProgramDataset;
  /** The dataset, open, where the state left it. */
  readonly input: InputSource;
  /** Restored, or zeros that await initial values. */
  readonly state: TrainMemory;
  /** The checkpoint that it is restored from; undefined for a run that begins. */
  readonly restored: Restored | undefined;
  /** Checkpoints that give a run that begins some of its initial values. */
  readonly given: InitFromCheckpoint | undefined;
}

/** The checkpoints of a training run. @param tell takes a line about one that failed */
function openCheckpointer(
  options: JobOptions,
  { hp }: SingleTask,
  tell: (line: string) => void,
): Checkpointer {
  const { saveIntervalSteps, saveMaxToKeep, saveKeepIntervalDuration, checkpointPolicies } = hp.train.hp;
  return new Checkpointer({
    directory: checkpointDirectory(options),
    experiment: options.name,
    ...{ saveIntervalSteps, saveMaxToKeep, saveKeepIntervalDuration },
    policies: checkpointPolicies,
    toDeleteSubdir: options.checkpointTodeleteSubdir,
    notify: ({ message }) => tell(message),
  });
}

/** Opens data and state of a run: a directory without checkpoints is that of one that begins. @throws as `restoreStart` */
export async function openStart(
  options: JobOptions,
  task: SingleTask,
  tell: (line: string) => void,
): Promise<TrainingStart> {
  const dataset = new ProgramDataset(options, task, trainingDataset(options), TRAIN);
  const checkpointer = openCheckpointer(options, task, tell);
  if (checkpointer.latestStep() === undefined) {
    forgetData(options.jobLogDir);
    takeData(options);
  }
  const input = dataset.open();
  const whole = heldByEngine(trainStateOf(task));
  const split = await SplitState.of(options, task, whole);
  const state = split === undefined ? whole : { ...whole, split };
  const restored = await timed(options, 'restore', () => restoreStart(options, checkpointer, state, dataset));
  const given = restored === undefined ? InitFromCheckpoint.open(task, state) : undefined;
  if (split !== undefined && restored === undefined && given === undefined) split.source = { from: 'seed' };
  return { checkpointer, dataset, input, state, restored, given };
}
