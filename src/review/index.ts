/** @file Reviews: comparison of two experiments or of two versions, and its reports. */
export { onDevice } from './changes/deviceEffects.js';
export { compareRun, type RunReport } from './compareRun.js';
export { compareTwo } from './compareTwo.js';
export { compareVersions, type VersionsRequest } from './compareVersions.js';
export { withLoaded } from './findExperiments.js';
export { tryDecoding } from './fingerprints/decodingFingerprint.js';
export type { DiffReport } from './reports/diffReport.js';
export type { Label } from './reports/gates.js';
export { markdownOf } from './reports/markdownReport.js';
export { parseReport } from './reports/parseReport.js';
export { textOf } from './reports/textReport.js';
export { verdictOf } from './reports/verdict.js';
export { readSettings } from './settings.js';
export { answerFolder } from './versions/answerCache.js';
export type { Limits } from './versions/evaluators.js';
