/** @file loadRun: a trained run's model, tokenizer and config from its directory. */
import type { LoadRunOptions, TrainedRun } from './trainedRun.js';

/**
 * Loads a run from its job_log_dir: configs from experiment.json, the vocabulary that training recorded, parameters from
 * a checkpoint (their moving average where the task decodes or evaluates with it: see `parametersOf`). The directory may be moved or copied; the
 * experiment's module is needed only if it declares classes of its own.
 *
 * @throws JobError for a directory that is no trained run; CheckpointError for a missing or broken checkpoint; UsageError
 *   for an experiment whose module isn't found; ConfigError for configs that no longer fit its classes.
 */
export async function loadRun(directory: string, options: LoadRunOptions = {}): Promise<TrainedRun> {
  // Loaded late: training and describing experiments import the package, too, and do not need it.
  const opened = await import('./trainedRun.js');
  return opened.TrainedRun.open(directory, options);
}
