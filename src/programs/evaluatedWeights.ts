/** @file Weights that programs evaluate and decode: a job's parameters, or their moving average. */
import { ConfigError } from '../hparams/index.js';
import { EMA } from '../learners/index.js';
import { JobError, type JobOptions } from '../runs/index.js';
import { averaged, type FlatParams, type FlatTrainState } from './taskState.js';

/** The parameters, or with `useEmaStates` their average, in the state's own memory. */
export type Weights = (useEmaStates: boolean) => FlatParams;

/** Weights of a state in training. @throws ConfigError where the optimizer keeps no average */
export function trainedWeights(state: FlatTrainState): Weights {
  let average: FlatParams | undefined;
  return (useEmaStates) => {
    if (!useEmaStates) return state;
    if (state.slots[EMA] === undefined) {
      const path = 'task.train.learner.optimizer.emaDecay';
      throw new ConfigError(`useEmaStates needs an average of the parameters: set ${path}, to 0.999 say.`, {
        path,
      });
    }
    average ??= averaged(state);
    return average;
  };
}

/** Weights of a job on a checkpoint, which has read one of the two. @throws JobError where the other one is asked for */
export function restoredWeights(
  { mode }: Pick<JobOptions, 'mode'>,
  state: FlatParams,
  isAverage: boolean,
): Weights {
  return (useEmaStates) => {
    if (useEmaStates === isAverage) return state;
    const [has, wanted] = isAverage ? ['average', 'parameters'] : ['parameters', 'average'];
    const field = mode === 'eval' ? 'evalUseEmaStates' : 'decodeUseEmaStates';
    throw new JobError(
      `--mode=${mode} has read the ${has} alone, and a program asks for the ${wanted} (useEmaStates ${useEmaStates}). ` +
        `Set task.train.${field}=${useEmaStates} for this job.`,
    );
  };
}
