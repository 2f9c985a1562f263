/** @file Experiments by name: search directories, and the class behind `--exp`. */
export { experimentDirectories } from './directories.js';
export { registerExports } from './registerExports.js';
export {
  ExperimentLoadError,
  type ResolvedExperiment,
  resolveExperiment,
} from './resolve.js';
export { UsageError } from './usageError.js';
