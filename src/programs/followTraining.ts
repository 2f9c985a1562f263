/** @file Checkpoints of a training run as they appear, for a job that evaluates or decodes beside it (paxml's eval and decode modes). */
import { setTimeout as sleep } from 'node:timers/promises';
import { listCheckpoints } from '../checkpoints/index.js';
import { checkpointDirectory, type JobOptions, trainingState } from '../runs/index.js';
import type { StopSignal } from '../system/index.js';

/** Milliseconds between looks at the directory: the first, and the most. Each is half as long again as the one before. */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** A signal is answered within this time. */
const SLICE_MS = 200;

/** A job that waits. */
type Waiting = Pick<JobOptions, 'jobLogDir' | 'waitSeconds'>;

/** Whether a job takes one checkpoint after the other, as long as training may give more. */
export const followsTraining = ({ mode, checkpoint }: Pick<JobOptions, 'mode' | 'checkpoint'>): boolean =>
  checkpoint === undefined && (mode === 'eval' || mode === 'decode');

/** Whether later checkpoints may come for a job. */
export async function mayFollow(options: JobOptions): Promise<boolean> {
  if (!followsTraining(options)) return false;
  const training = await trainingState(options.jobLogDir);
  return training === 'running' || (training === 'absent' && (options.waitSeconds ?? 0) > 0);
}

/**
 * Waits for a checkpoint: while a process trains, and where none does for `waitSeconds`, since training may be yet to start
 * or to come back.
 *
 * @param after the newest step that is done; undefined: none is.
 * @param least a checkpoint of fewer steps does not count.
 * @returns the newest step; undefined where none will come, or a signal came.
 */
export async function nextCheckpoint(
  options: Waiting,
  stop: Pick<StopSignal, 'received'>,
  after = -1,
  least = 0,
): Promise<number | undefined> {
  const { jobLogDir, waitSeconds = 0 } = options;
  let alone = performance.now();
  for (
    let pause = FIRST_PAUSE_MS;
    stop.received === undefined;
    pause = Math.min(1.5 * pause, LONGEST_PAUSE_MS)
  ) {
    // Asked first: what training saved before its end is found then.
    const training = await trainingState(jobLogDir);
    const newest = newestStep(options);
    if (newest !== undefined && newest > after && newest >= least) return newest;
    if (training === 'finished') return undefined;
    if (training === 'running') alone = performance.now();
    const left = 1000 * waitSeconds - (performance.now() - alone);
    if (training === 'absent' && left <= 0) return undefined;
    await sleepUnless(
      () => stop.received !== undefined,
      training === 'absent' ? Math.min(pause, left) : pause,
    );
  }
  return undefined;
}

function newestStep(options: Pick<JobOptions, 'jobLogDir'>): number | undefined {
  return [...listCheckpoints(checkpointDirectory(options)).keys()].at(-1);
}

async function sleepUnless(isOver: () => boolean, ms: number): Promise<void> {
  const end = performance.now() + ms;
  for (let left = ms; left > 0 && !isOver(); left = end - performance.now())
    await sleep(Math.min(left, SLICE_MS));
}
