/** @file The Experiment class, its constants, and its methods' configs. */
export { type ClassVars, classVars, classVarsText, parseClassVars } from './classVars.js';
export {
  commonRoots,
  configRoots,
  type ExperimentConfigs,
  type ExtraConfigs,
  extraOf,
  extraRoots,
  isConfigPath,
  makeConfigs,
} from './configs.js';
export {
  type ConstantOverride,
  type Constants,
  constantsOf,
  MissingConstantError,
  oldConstantsOf,
} from './constants.js';
export {
  baseClassesOf,
  checkRequired,
  constantProblems,
  type EffectiveConstant,
  effectiveConstants,
  unreadConstants,
  unreadOverrides,
} from './effectiveConstants.js';
export {
  Experiment,
  type ExperimentClass,
  isExperimentClass,
} from './experiment.js';
export { instantiate } from './instantiate.js';
export { MachineRule, type RuleMachine } from './machineRule.js';
export { type ExperimentParameters, ParameterizedExperiment } from './parameterizedExperiment.js';
