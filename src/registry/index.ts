/** @file Experiments: their base class, how names find them, how the command line sets their constants and configs. */
export { type ClassVars, classVars, classVarsText, parseClassVars } from './classVars.js';
export { type ConfiguredExperiment, configure, type SetOverride } from './configure.js';
export { UsageError } from './errors.js';
export {
  type ConstantOverride,
  type Constants,
  checkRequired,
  constantsOf,
  type EffectiveConstant,
  Experiment,
  type ExperimentClass,
  effectiveConstants,
  instantiate,
  isExperimentClass,
} from './experiment.js';
export {
  ExperimentLoadError,
  experimentDirectories,
  type ResolvedExperiment,
  resolveExperiment,
} from './resolve.js';
