/** @file Experiments by name: search directories, and the class behind `--exp`. */
export { registerExports } from '../hparams/index.js';
export { experimentDirectories } from './directories.js';
export {
  ExperimentLoadError,
  type ResolvedExperiment,
  resolveExperiment,
} from './resolve.js';
export { UsageError } from './usageError.js';
