/**
 * @file Runs that are expected of a job's programs, by which `--engine=auto` weighs compiling. They follow from the
 * configs alone and count the whole job, whatever step it resumes from, so that a resumed run takes the same engines.
 */
import type { Config } from '../hparams/index.js';
import type { BaseInput } from '../inputs/index.js';
import type { JobOptions } from '../runs/index.js';
import type { SingleTask } from '../tasks/index.js';

/** Batches of data that is read to its end, whose number is known only then. */
const BATCHES_TO_THE_END = 100;

/** Batches of a dataset; a negative limit reads to the end. */
const batchesOf = (limit: number): number => (limit < 0 ? BATCHES_TO_THE_END : limit);

/** Times that a job comes to what is due every so many steps of training; once without training. */
function occasions({ mode }: Pick<JobOptions, 'mode'>, task: SingleTask, interval: number | null): number {
  if (interval === null || !mode.startsWith('train')) return 1;
  return Math.ceil(task.hp.train.hp.numTrainSteps / interval);
}

/** Batches that all evaluations of a job read. @param datasets besides the training data */
export function expectedEvalRuns(
  options: Pick<JobOptions, 'mode'>,
  task: SingleTask,
  datasets: readonly Config<BaseInput>[],
): number {
  const { evalIntervalSteps, evalSkipTrain } = task.hp.train.hp;
  const ofTraining = options.mode === 'eval' || evalSkipTrain ? 0 : 1;
  const batches = datasets.reduce(
    (sum, { evalLoopNumBatches, resetForEval }) =>
      sum + batchesOf(evalLoopNumBatches ?? (resetForEval ? -1 : 1)),
    ofTraining,
  );
  return batches * occasions(options, task, evalIntervalSteps);
}

/** Batches of an inference. @param limit null: all */
export const expectedInferRuns = (limit: number | null): number => batchesOf(limit ?? -1);

/** Tokens that all decodes of a dataset draw, at most. @param batches of a decode; -1: all */
export function expectedDecodeRuns(
  options: Pick<JobOptions, 'mode'>,
  task: SingleTask,
  batches: number,
): number {
  const { decoder } = task.hp.decode.hp;
  return (
    batchesOf(batches) * decoder.hp.seqlen * occasions(options, task, task.hp.train.hp.decodeIntervalSteps)
  );
}
