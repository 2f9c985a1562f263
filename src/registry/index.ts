/** @file Experiments by name: search directories, and the class behind `--exp`. */
export { registerExports } from '../hparams/index.js';
export { UsageError } from '../system/text/index.js';
export { experimentDirectories } from './names/directories.js';
export {
  ExperimentLoadError,
  type ResolvedExperiment,
  resolveExperiment,
  subExperimentsOf,
} from './resolve.js';
