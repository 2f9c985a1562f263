/** @file Summaries: TensorBoard events, metrics.jsonl and the console line. */

export { EventFile } from './eventFile.js';
export { MetricsFile } from './metricsFile.js';
export { type MetricsLine, parseMetricsLine } from './metricsLine.js';
export { type NamedTable, tableFields, tableImage, tableMarkdown, tableText } from './metricTable.js';
export { encodePng } from './png.js';
export {
  ProgressLine,
  type ProgressOptions,
  type ProgressReport,
  type ProgressStream,
} from './progressLine.js';
export { type PrometheusMetric, prometheusNumber, prometheusText } from './prometheusText.js';
export { SummaryError } from './summaryError.js';
export type { Images, SummaryValue } from './summaryValues.js';
export { formatThroughput, type Throughput, throughputScalar } from './throughput.js';
export { BaseTracker, type TrackedRun, type TrackedScalars } from './trackers/baseTracker.js';
export { PrometheusFile } from './trackers/prometheusFile.js';
export { Trackio } from './trackers/trackio.js';
