/** @file Flags of the commands that use a trained run, and the run itself. */

import { type FlagTable, oneOf } from '../../cli/commandLine/index.js';
import { flagTable } from '../../cli/run/index.js';
import { type LoadRunOptions, loadRun, type TrainedRun } from '../../trained/index.js';
import type { Arguments } from '../command.js';

const { num_threads, engine } = flagTable as Record<string, FlagTable[string]>;

/** Flags by which a run is loaded. */
export const trainedFlags: FlagTable = {
  checkpoint: {
    ...flagTable.checkpoint!,
    about:
      'The checkpoint: of this step, the best by task.train.trackMetric, or that of another run or checkpoint directory. ' +
      'Default: the newest.',
  },
  num_threads: num_threads!,
  engine: engine!,
};

/** The flag of caches, for commands that continue texts. */
export const cacheFlags: FlagTable = {
  cache_bits: {
    ...{ key: 'cacheBits', value: 'N', parse: (text, flag) => Number(oneOf(['8'])(text, flag)) },
    about: "Bits of the elements of cached keys and values: 8. Default: those of the model's layers.",
  },
};

/** Loads the run whose directory is the command's argument. */
export function runOf(
  { positionals, values }: Arguments,
  options: Pick<LoadRunOptions, 'batchSize' | 'parametersOf' | 'chatTemplate'> = {},
): Promise<TrainedRun> {
  return loadRun(positionals[0]!, { ...options, ...loadOptions(values) });
}

/** The options of a run that flags set. */
export function loadOptions(values: Arguments['values']): LoadRunOptions {
  const { checkpoint, numThreads, engine, cacheBits, cacheTokens } = values as LoadRunOptions;
  return {
    ...{ checkpoint, numThreads },
    ...{ ...(engine && { engine }), ...(cacheBits && { cacheBits }), ...(cacheTokens && { cacheTokens }) },
  };
}
