/** @file Names of experiments in source text, found without running it. Light, since every command starts with it. */
export {
  directoriesFor,
  experimentDirectories,
  extensions,
  isFile,
  showFile,
  showPlace,
} from './directories.js';
export { type FoundExperiment, type OwnConstant, type Scan, scan, scanExperiments } from './discovery.js';
export { readSourceFile, tooDeep } from './readSource.js';
export { type BrokenFile, isPattern, matching, select } from './selection.js';
export type { RecordEntry } from './sourceFile.js';
export { fileOfImport, SourceFiles } from './sourceFiles.js';
export { fullNameOf, requiredName, suggestExperiment } from './suggest.js';
