/**
 * @file An experiment's configs as one config, so that every write by a flag, file or fiddler is checked and recorded.
 */
import { z } from 'zod';
import { type Config, Configurable, sub } from '../hparams/index.js';
import { BaseInput } from '../inputs/index.js';
import { SingleTask } from '../tasks/index.js';

/** Results of an experiment's methods. */
class Configs extends Configurable.with({
  task: sub(SingleTask, null).describe('The model, learner and training schedule.'),
  datasets: z.array(sub(BaseInput, null)).describe('The inputs.'),
  decodeDatasets: z.array(sub(BaseInput, null)).describe('The inputs that are continued in decode modes.'),
}) {}

/** An experiment's configs, as passed to fiddlers: `configs.task.train.numTrainSteps = 100`. */
export type ExperimentConfigs = Config<Configs>;

/** Names of the configs, with which paths into them start. */
export const configRoots = ['task', 'datasets', 'decodeDatasets'] as const;

/** Combines the methods' results. @throws ConfigError for a result of the wrong type. */
export function makeConfigs(values: Partial<ExperimentConfigs>): ExperimentConfigs {
  return Configs.config(values);
}

/** Whether a path leads into the configs, instead of naming a constant. */
export function isConfigPath(path: string): boolean {
  return /^(task|datasets|decodeDatasets)(?:[.[]|$)/.test(path);
}
