/** @file The configs of an experiment as one config, so that every write by a flag, file or fiddler is checked and recorded. */
import { z } from 'zod';
import { type Config, Configurable, sub } from '../hparams/index.js';
import { BaseInput } from '../inputs/index.js';
import { SingleTask } from '../tasks/index.js';

/** What an experiment's methods return. */
class Configs extends Configurable.with({
  task: sub(SingleTask, null).describe('What is trained.'),
  datasets: z.array(sub(BaseInput, null)).describe('The inputs.'),
  decodeDatasets: z.array(sub(BaseInput, null)).describe('The inputs that are continued in decode modes.'),
}) {}

/** The configs of an experiment, as a fiddler gets them: `configs.task.train.numTrainSteps = 100`. */
export type ExperimentConfigs = Config<Configs>;

/** The names of the configs: paths into them begin with one of these. */
export const configRoots = ['task', 'datasets', 'decodeDatasets'] as const;

/** Puts what the methods returned together. @throws ConfigError where it is not what they are to return. */
export function makeConfigs(values: Partial<ExperimentConfigs>): ExperimentConfigs {
  return Configs.config(values);
}

/** Whether a path leads into the configs, rather than naming a constant. */
export function isConfigPath(path: string): boolean {
  return /^(task|datasets|decodeDatasets)(?:[.[]|$)/.test(path);
}
