/** @file Parameters of a checkpoint, for jobs and programs that don't train. */
import {
  CheckpointError,
  Checkpointer,
  locateCheckpoint,
  type RestoredCheckpoint,
  type RestoreOptions,
  readCheckpoint,
} from '../checkpoints/index.js';
import { loadMapFile } from '../files/index.js';
import { EMA } from '../learners/index.js';
import { checkpointDirectory, isOfOtherRun, JobError, type JobOptions } from '../runs/index.js';
import { writeText } from '../system/index.js';
import type { SingleTask } from '../tasks/index.js';
import { type FlatTrainState, paramsOf, type RestoredState } from './taskState.js';

/** A checkpoint's directory, and what is kept in it beside the state. */
export type RestoredParams = Pick<RestoredCheckpoint, 'path' | 'progress' | 'metadata'>;

/**
 * The parameters of the checkpoint that the options name, or in their place their average; other slots are not read. They are
 * views of the mapped file where that is possible: programs that pack them leave no other copy in memory.
 */
export async function restoreParams(
  options: JobOptions,
  task: SingleTask,
  useEma: boolean,
): Promise<RestoredState> {
  return (await restoreMapped(options, task, useEma)).state;
}

/** As `restoreParams`, with what else the checkpoint has. */
export async function restoreMapped(
  options: JobOptions,
  task: SingleTask,
  useEma: boolean,
): Promise<RestoredParams & { readonly state: RestoredState }> {
  const state = paramsOf(task);
  const { mapped, ...read } = await readInto(state, options, useEma, await loadMapFile());
  return { ...read, state: { ...state, views: { ...state.views, ...mapped } } };
}

/**
 * Reads the parameters of the checkpoint that the options name, or their average, into memory.
 *
 * @throws CheckpointError, JobError as `restoreParams`
 */
export async function restoreInto(
  state: FlatTrainState,
  options: JobOptions,
  useEma: boolean,
): Promise<RestoredParams> {
  return readInto(state, options, useEma);
}

async function readInto(
  state: FlatTrainState,
  options: JobOptions,
  useEma: boolean,
  map?: RestoreOptions['map'],
): Promise<RestoredParams & Pick<RestoredCheckpoint, 'mapped'>> {
  const { checkpoint } = options;
  const how = { paramsOnly: useEma ? EMA : true, map } as const;
  if (isOfOtherRun(checkpoint)) {
    const path = locateCheckpoint(checkpoint);
    return { ...readCheckpoint(path, state, how), path };
  }
  const checkpointer = new Checkpointer({
    directory: checkpointDirectory(options),
    experiment: options.name,
    readOnly: true,
    notify: ({ message }) => writeText(`${message}\n`),
  });
  try {
    return await checkpointer.restore(state, {
      step: checkpoint,
      ...how,
      allowPrevious: options.restorePreviousCheckpoint,
    });
  } catch (error) {
    const isEmpty = checkpointer.latestStep() === undefined;
    throw isEmpty && error instanceof CheckpointError && error.kind === 'missing'
      ? nothingTrained(options, error)
      : error;
  } finally {
    await checkpointer.close();
  }
}

function nothingTrained({ jobLogDir, mode }: JobOptions, cause: CheckpointError): JobError {
  return new JobError(
    `--job_log_dir=${jobLogDir}: --mode=${mode} needs a checkpoint, and there is none in ${cause.path}. ` +
      'Train with --mode=train first, or give the directory of a run that was trained.',
    { cause },
  );
}
