/** @file Experiments: their base class, how names find them, how the command line sets their constants and configs. */
export { type ClassVars, classVars, classVarsText, parseClassVars } from './classVars.js';
export { type ExperimentConfigs, registerExports } from './configs.js';
export { type ConfiguredExperiment, configure, constantOverrides } from './configure.js';
export { experimentDirectories } from './directories.js';
export { dumpText, jsonDocument, yamlDocument } from './dump.js';
export { UsageError } from './errors.js';
export {
  type ConstantOverride,
  type Constants,
  checkRequired,
  constantProblems,
  constantsOf,
  type EffectiveConstant,
  Experiment,
  type ExperimentClass,
  effectiveConstants,
  instantiate,
  isExperimentClass,
  MissingConstantError,
  unreadConstants,
} from './experiment.js';
export { type FiddlerResult, fiddler, type SweepResult, sweep } from './functions.js';
export {
  type Change,
  flagOf,
  type Override,
  parseFiddler,
  parseFile,
  parseSet,
  parseSweep,
  parseUnset,
  shellText,
} from './overrides.js';
export {
  ExperimentLoadError,
  type ResolvedExperiment,
  resolveExperiment,
} from './resolve.js';
export { type Combination, checkedCombinations, expandSweeps } from './sweeps.js';
