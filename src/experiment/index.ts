/** @file The Experiment class, its constants, and the configs that its methods return. */
export { type ClassVars, classVars, classVarsText, parseClassVars } from './classVars.js';
export { configRoots, type ExperimentConfigs, isConfigPath, makeConfigs } from './configs.js';
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
  oldConstantsOf,
  unreadConstants,
  unreadOverrides,
} from './experiment.js';
