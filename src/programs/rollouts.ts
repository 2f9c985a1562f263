/** @file Rollouts: a training job samples the answers that it trains on. */
import type { InputSource } from '../inputs/index.js';
import type { JobOptions } from '../runs/index.js';
import { RolloutInput, type SingleTask } from '../tasks/index.js';
import { DatasetDecoder, decodableModel } from './datasetDecoder.js';
import type { ProgramDataset } from './programDataset.js';
import type { FlatParams } from './taskState.js';

/**
 * Has a training input sample from parameters as they are at each of its batches.
 *
 * @returns the decoders to close with the job: none for other inputs.
 * @throws ConfigError for a model that can't decode.
 */
export function sampleRollouts(
  options: JobOptions,
  task: SingleTask,
  params: FlatParams,
  dataset: ProgramDataset,
  input: InputSource,
): DatasetDecoder[] {
  if (!(input instanceof RolloutInput)) return [];
  const { decode, numIterations } = input.hp;
  const model = decodableModel(task, `Input '${input.name}' samples answers`);
  const batches = Math.ceil(task.hp.train.hp.numTrainSteps / numIterations);
  const runs = batches * decode.hp.decoder.hp.seqlen;
  const decoder = new DatasetDecoder(options, task, model, params, dataset, { decode, runs });
  input.sampler = (prompts, key) => decoder.continueBatch(prompts, key);
  return [decoder];
}
