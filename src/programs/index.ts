/** @file Jobs: one run of the command, which trains, evaluates or decodes. */
import { Profiler } from '../compiler/index.js';
import { type JobOptions, openJobDirectory } from '../runs/index.js';
import { InterruptedError, StopSignal, type StopSignalName } from '../system/index.js';
import { runCheckpointJob } from './checkpointJob.js';
import { followsTraining, nextCheckpoint } from './followTraining.js';
import { showRestore } from './matchTable.js';
import { followRanks } from './ranks/followRanks.js';
import { optionsOfRank } from './ranks/optionsOfRank.js';
import { runTraining } from './trainJob.js';

export type { JobMode, JobOptions } from '../runs/index.js';
export { JobError, JobInUseError } from '../runs/index.js';
export { runStudyJob } from './studyJob.js';
export { runSweepJob } from './sweepJob.js';

/** The end of a job. */
export interface JobResult {
  /** The signal that ended it early, if any; training has saved its state. */
  readonly signal: StopSignalName | undefined;
}

/**
 * Runs one job. The first signal makes it save and return, or exit if there is nothing to save yet; a second one ends
 * the process.
 *
 * @param stop may already be listening.
 * @throws JobInUseError if another process uses the directory, ConfigError for invalid configs, InputError,
 *   CheckpointError, SummaryError or JobError for files and environment.
 */
export async function runJob(job: JobOptions, stop = new StopSignal()): Promise<JobResult> {
  const profiled = job.profile ? { ...job, profiler: new Profiler() } : job;
  const options = profiled.ranks ? await optionsOfRank(profiled, profiled.ranks) : profiled;
  const { mode, jobLogDir, ranks } = options;
  if (options.restoreChanged === 'dry_run') {
    showRestore(options);
    return { signal: undefined };
  }
  stop.listen();
  try {
    if (ranks !== undefined && ranks.rank > 0) {
      await followRanks(options, ranks);
      return { signal: stop.received };
    }
    // There may be no directory yet that could be locked; what is wrong with one is told by those who open it.
    if (followsTraining(options)) await nextCheckpoint(options, stop).catch(() => {});
    const directory = await openJobDirectory(jobLogDir, mode);
    try {
      if (mode.startsWith('train')) await runTraining(options, stop);
      else await runCheckpointJob(options, stop);
    } finally {
      directory.close();
    }
  } catch (error) {
    // An interruption by a signal is not a failure.
    if (!(error instanceof InterruptedError) || stop.received === undefined) throw error;
  } finally {
    stop.close();
  }
  return { signal: stop.received };
}
export { adapterNames } from './adapterNames.js';
export { checkRecorded, recordData, recordedData } from './dataRecord.js';
export { draftModel } from './draftModel.js';
export { asStored, ImportedWeights } from './importWeights.js';
export { checkAgreement, checkVocabulary } from './inputAgreement.js';
export { findPeak, type Peak, trainFlops } from './mfu.js';
export { TRAIN, trainingDataset } from './programDataset.js';
export { openRanks, threadsOfRank } from './ranks/openRanks.js';
export { variablesInParts } from './ranks/splitState.js';
export { partitionedStep } from './ranks/splitStep.js';
export { restoreParams } from './restoredParams.js';
export {
  loadable,
  type Resumption,
  resume,
  type SavedRun,
  savedIn,
  savedRun,
  type Trainable,
} from './resumption.js';
export { stepsOfCall } from './stepCalls.js';
export type { FlatParams, RestoredState } from './taskState.js';
export { type TrainedTask, trainedTasks } from './trainedTasks.js';
export {
  type KnownShapes,
  keptTensors,
  type PublishedTensor,
  type PublishedTensors,
  publishedTensors,
  tensorValues,
} from './writtenTensors.js';
