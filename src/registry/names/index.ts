/** @file Names of experiments in source text, found without running it. Light, since every command starts with it. */
export {
  directoriesFor,
  experimentDirectories,
  extensions,
  isFile,
  showFile,
  showPlace,
} from './directories.js';
export {
  type FoundExperiment,
  type Scan,
  scan,
  type UnclassifiedExport,
} from './discovery.js';
export type { OwnConstant, RecordEntry } from './fileEntry.js';
export type { Unfollowed } from './moduleLoads.js';
export { readSourceFile, tooDeep } from './readSource.js';
export { areTold, type BrokenFile, isPattern, matching, select } from './selection.js';
export { fileOfImport, SourceFiles } from './sourceFiles.js';
export { fullNameOf, requiredName, suggestExperiment } from './suggest.js';
