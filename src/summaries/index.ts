/** @file Summaries: TensorBoard events, metrics.jsonl, the console line and MFU. */

export { SummaryError } from './errors.js';
export { EventFile } from './eventFile.js';
export { formatCount, formatDuration, formatGrouped, formatScaled, type Scales } from './format.js';
export { MetricsFile, type MetricsLine } from './metricsFile.js';
export { calibratePeak, mfu, type Peak, statedPeak, trainFlopsPerToken } from './mfu.js';
export {
  ProgressLine,
  type ProgressOptions,
  type ProgressReport,
  type ProgressStream,
} from './progressLine.js';
