/** @file Records of runs: directories, status, settings, comparison. */
export {
  type ComparedRun,
  type CompareOptions,
  compareRuns,
  type RunComparison,
  runTable,
  UnknownMetric,
} from './compareRuns.js';
export { WallTime } from './goodput.js';
export { openJobDirectory, writeJobFile } from './jobDirectory.js';
export { JobError, JobInUseError, strayFailures } from './jobErrors.js';
export { describeConfigs, keepRecord, settingChanges, versions, writeJobFiles } from './jobFiles.js';
export { keptProducts, type Machine, machineChanges, machineOf, recordedMachine } from './machine.js';
export { goodputMetrics, type MetricSelection, selectedMetrics } from './metricValues.js';
export {
  checkpointDirectory,
  compileOptions,
  decodedDatasets,
  decodesDatasets,
  type EngineOptions,
  evaluatedDatasets,
  evaluatesDatasets,
  inferredDatasets,
  isOfOtherRun,
  isOfOwnRun,
  type JobMode,
  type JobOptions,
  type JobRanks,
  type ProgressNotes,
  phase,
  slowUnit,
  type TapOptions,
  timed,
} from './options.js';
export { type RunEnd, StatusRecord, trainingState } from './runStatus.js';
export { readExperiment, readRun } from './runSummary.js';
export { missingOf, type RunRecord, SweepRecord, type SweepRun } from './sweepRecord.js';
