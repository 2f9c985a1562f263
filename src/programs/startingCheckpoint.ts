/** @file Checkpoint that training starts from: the newest of its run, an earlier one, or that of another run. */
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import {
  type BestCheckpoint,
  type Checkpointer,
  locateCheckpoint,
  MatchingRestore,
  type RestorePlan,
  readCheckpoint,
  readTogether,
} from '../checkpoints/index.js';
import { takeMemory } from '../compiler/index.js';
import { explain, isThere, readJsonFile } from '../files/index.js';
import { InputError, type InputState } from '../inputs/index.js';
import { EMA, fillSlots, PRETRAINED, refillSlots } from '../learners/index.js';
import {
  isOfOtherRun,
  isOfOwnRun,
  JobError,
  type JobOptions,
  type Machine,
  machineChanges,
  recordedMachine,
  writeJobFile,
} from '../runs/index.js';
import { recordData, recordedData } from './dataRecord.js';
import { matchLines } from './matchTable.js';
import { type ProgramDataset, TRAIN } from './programDataset.js';
import { type Progress, readProgress } from './progress.js';
import { shortList } from './reporter.js';
import { largeSlots, type TrainMemory } from './taskState.js';

/** Slots that a state or its checkpoint may lack. */
export const OPTIONAL_SLOTS: readonly string[] = [EMA, PRETRAINED];

/** Differences from a checkpoint's run. */
export interface RestoredDifferences {
  /** Differences between the present training data and the run's, if any. */
  readonly changes: string | undefined;
  /** Variables that were frozen and are no longer. */
  readonly unfrozen: readonly string[];
  /** Whether the moving average of the parameters begins or ends here. */
  readonly average: 'begins' | 'ends' | undefined;
}

/** A restored checkpoint. */
export interface Restored extends RestoredDifferences {
  /** Directory of the checkpoint. */
  readonly path: string;
  /** Directory of the run that saved it. */
  readonly jobLogDir: string;
  readonly progress: Progress | undefined;
  /** The best checkpoint so far, if the run has named one. */
  readonly best: BestCheckpoint | undefined;
  /** What fits of a checkpoint of other variables or slots, for the state to take once it has initial values. */
  readonly matching?: MatchingRestore | undefined;
}

/** Content of started_from.json, in the directory of a run that started from the state of another. */
const origin = z.strictObject({
  /** `--checkpoint`, absolute. */
  checkpoint: z.string(),
  /** Directory of the checkpoint that it meant. */
  path: z.string(),
});

/**
 * Restores the state and the training input from `--checkpoint`, or else from the newest checkpoint; undefined for a run
 * that begins from initial values. Slots of variables that were frozen start as at the first step; an average of the
 * parameters that the checkpoint lacks starts from its parameters.
 *
 * @throws JobError where the directory's run did not start from the other run that `--checkpoint` names, or has no
 *   checkpoint; CheckpointError for one that is missing, broken or of another model; InputError for data that the saved
 *   position does not fit.
 */
export async function restoreStart(
  options: JobOptions,
  checkpointer: Checkpointer,
  state: TrainMemory,
  dataset: ProgramDataset,
): Promise<Restored | undefined> {
  const { checkpoint, jobLogDir } = options;
  const newest = checkpointer.latestStep();
  if (newest === undefined && checkpoint === undefined) return undefined;
  if (newest === undefined && isOfOwnRun(checkpoint)) {
    throw new JobError(
      `--checkpoint=${checkpoint}: --job_log_dir=${jobLogDir} has no checkpoint to go on from. Give the directory of a run ` +
        'that was trained, or start from another run by its path, as --checkpoint=out/run.',
    );
  }
  if (newest !== undefined && isOfOtherRun(checkpoint)) checkOrigin(options, checkpoint, newest);
  const { split } = state;
  if (split === undefined || options.restoreChanged !== undefined)
    await takeMemory([state.params, ...largeSlots(state), ...state.denseGrads], options);
  const matching = openMatching(options, checkpointer, state);
  if (matching !== undefined) {
    const { path, metadata } = matching;
    const { inputState, progress } = matching.beside();
    state.step = metadata.step;
    return {
      ...{ path, matching, best: metadata.best, changes: setPosition(dataset, inputState) },
      jobLogDir: newest === undefined ? runOf(path) : jobLogDir,
      progress: readProgress(progress, path),
      ...{ unfrozen: [], average: undefined },
    };
  }
  const restored =
    isOfOtherRun(checkpoint) && newest === undefined
      ? await fromOtherRun(checkpoint, state)
      : await checkpointer.restore(state, {
          step: isOfOwnRun(checkpoint) ? checkpoint : undefined,
          allowPrevious: options.restorePreviousCheckpoint,
          optionalSlots: OPTIONAL_SLOTS,
          together: split && ((directory) => split.read(directory)),
        });
  const { inputState, path, slotsAdded } = restored;
  const changes = setPosition(dataset, inputState);
  const differences = { changes, ...slotDifferences(restored) };
  if (split === undefined) {
    refillSlots(state, state.views, new Set(differences.unfrozen));
    fillSlots(state, slotsAdded);
  } else split.source = { from: 'checkpoint', unfrozen: differences.unfrozen, slotsAdded };
  const progress = readProgress(restored.progress, path);
  return {
    ...{ path, jobLogDir: newest === undefined ? runOf(path) : jobLogDir },
    ...{ progress, best: restored.metadata.best, ...differences },
  };
}

/** Consequences of slots that the state and its checkpoint do not both have. */
export function slotDifferences({
  withoutSlots,
  slotsAdded,
  slotsDropped,
}: RestorePlan): Omit<RestoredDifferences, 'changes'> {
  const average = slotsAdded.includes(EMA) ? 'begins' : slotsDropped.includes(EMA) ? 'ends' : undefined;
  return { unfrozen: withoutSlots, average };
}

/** Moves the training data to a saved position. @returns differences between the present data and the run's, if any */
export function setPosition(dataset: ProgramDataset, inputState: unknown): string | undefined {
  const changes = dataset.takeChanges();
  try {
    if (inputState !== null) dataset.open().setState(inputState as InputState);
  } catch (error) {
    if (!(error instanceof InputError) || changes === undefined) throw error;
    throw new InputError(`${error.message} Since the run began: ${changes}.`, { cause: error });
  }
  return changes;
}

/** The checkpoint of `--restore_changed`; undefined where that is not given, or all of the checkpoint fits. */
function openMatching(
  { restoreChanged, checkpoint, name }: JobOptions,
  checkpointer: Checkpointer,
  state: TrainMemory,
): MatchingRestore | undefined {
  if (restoreChanged === undefined) return undefined;
  const isOther = isOfOtherRun(checkpoint) && checkpointer.latestStep() === undefined;
  const path = isOther
    ? locateCheckpoint(checkpoint)
    : locateCheckpoint(checkpointer.directory, isOfOwnRun(checkpoint) ? checkpoint : undefined);
  const matching = MatchingRestore.open(path, isOther ? undefined : name, state);
  if (matching.matches.some(({ outcome }) => outcome !== 'restored')) return matching;
  matching.close();
  return undefined;
}

/** Lines of the console about a run that goes on: the settings that differ from those of the checkpoint's run. */
export function restoredLines({ jobLogDir, matching, ...differences }: Restored, machine: Machine): string[] {
  return [
    ...machineChanges(recordedMachine(jobLogDir) ?? {}, machine),
    ...differencesTold(differences).map(({ text }) => text),
    ...(matching === undefined ? [] : matchLines(matching.matches)),
  ];
}

/** The differences by name, each with a sentence. */
export function differencesTold({
  changes,
  average,
  unfrozen,
}: RestoredDifferences): { readonly what: string; readonly text: string }[] {
  return [
    ...(changes === undefined ? [] : [{ what: 'data', text: `Resuming with changed data: ${changes}.` }]),
    ...(average === undefined
      ? []
      : [
          {
            what: 'moving average',
            text: `The moving average of the parameters ${average} at this step: emaDecay has changed.`,
          },
        ]),
    ...(unfrozen.length === 0
      ? []
      : [
          {
            what: 'variables that were frozen',
            text: `No longer frozen, with the optimizer's state of a first step: ${shortList(unfrozen)}.`,
          },
        ]),
  ];
}

async function fromOtherRun(checkpoint: string, state: TrainMemory) {
  const path = locateCheckpoint(checkpoint);
  const { split } = state;
  const wanted = { optionalSlots: OPTIONAL_SLOTS };
  const contents =
    split === undefined
      ? readCheckpoint(path, state, wanted)
      : await readTogether(path, state, wanted, (directory) => split.read(directory));
  return { ...contents, path };
}

/** Before a new run opens its data: the data of another run, if its checkpoint is to be started from. */
export function takeData({ checkpoint, jobLogDir }: JobOptions): void {
  if (!isOfOtherRun(checkpoint)) return;
  const data = recordedData(runOf(locateCheckpoint(checkpoint)), TRAIN);
  if (data !== undefined) recordData(jobLogDir, TRAIN, data);
}

/** The directory of the run with this checkpoint. */
const runOf = (path: string): string => {
  const above = dirname(resolve(path));
  return basename(above) === 'checkpoints' ? dirname(above) : above;
};

const originPath = (jobLogDir: string): string => join(jobLogDir, 'started_from.json');

/** Records that a run started from the state of another, so that the same command resumes it. @throws JobError */
export function recordOrigin({ jobLogDir, checkpoint }: JobOptions, restored: Restored | undefined): void {
  if (restored === undefined || !isOfOtherRun(checkpoint) || restored.jobLogDir === jobLogDir) return;
  const content: z.output<typeof origin> = {
    checkpoint: resolve(checkpoint),
    path: resolve(restored.path),
  };
  writeJobFile(originPath(jobLogDir), `${JSON.stringify(content, null, 1)}\n`);
}

function readOrigin(path: string): z.output<typeof origin> | undefined {
  if (!isThere(path)) return undefined;
  try {
    return readJsonFile(path, origin);
  } catch (cause) {
    throw new JobError(
      `${path}: not the record of a run's start (${explain(cause)}). Restore it, or leave out --checkpoint to go on with this run.`,
      { cause },
    );
  }
}

function checkOrigin({ jobLogDir }: JobOptions, checkpoint: string, newest: number): void {
  const recorded = readOrigin(originPath(jobLogDir));
  if (recorded?.checkpoint === resolve(checkpoint)) return;
  const started = recorded === undefined ? 'did not start from there' : `started from ${recorded.checkpoint}`;
  throw new JobError(
    `--checkpoint=${checkpoint}: --job_log_dir=${jobLogDir} has a run that ${started}; its newest checkpoint is that of ` +
      `step ${newest}. Take another --job_log_dir to start from ${checkpoint}, or leave out --checkpoint to go on with ` +
      'this run.',
  );
}
