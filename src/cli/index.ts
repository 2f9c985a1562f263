/** @file Command-line changes of experiments: overrides, fiddlers, sweeps and dumps. */
export { type FiddlerResult, fiddler, type SweepResult, sweep } from './commandFunctions.js';
export { dumpText, jsonDocument, yamlDocument } from './configDump.js';
export { loadConfigModules } from './configModules.js';
export { type ConfiguredExperiment, configure, constantOverrides } from './configure.js';
export { namedExperiment } from './namedExperiment.js';
export {
  type Change,
  flagOf,
  type Override,
  parseFiddler,
  parseFile,
  parseSet,
  parseShellText,
  parseSweep,
  parseUnset,
  shellText,
} from './overrides.js';
export { type Combination, checkedCombinations, expandSweeps } from './sweeps.js';
