/** @file PrometheusFile: the newest scalars in Prometheus' text format, for the textfile collector of its node exporter. */
import { join } from 'node:path';
import { z } from 'zod';
import { writeWhole } from '../../files/index.js';
import { type PrometheusMetric, type PrometheusSample, prometheusText } from '../prometheusText.js';
import { BaseTracker, type TrackedRun, type TrackedScalars } from './baseTracker.js';

/** A tag as a metric's name: `Metrics/total_loss` is `luthier_Metrics_total_loss`. */
const metricName = (tag: string): string => `luthier_${tag.replace(/[^a-zA-Z0-9_]/g, '_')}`;

/** Scalars as gauges, those of a name together. Of two tags that are one name, the label `tag` tells which. */
function gauges(
  newest: Iterable<TrackedScalars>,
  shared: Readonly<Record<string, string>>,
): PrometheusMetric[] {
  const byName = new Map<string, PrometheusSample[]>();
  for (const { program, step, scalars } of newest)
    for (const [tag, value] of Object.entries({ step, ...scalars })) {
      const name = metricName(tag);
      const sample = { labels: { ...shared, program, tag }, value };
      byName.set(name, [...(byName.get(name) ?? []), sample]);
    }
  return Array.from(byName, ([name, samples]) => ({ name, type: 'gauge', samples }));
}

/**
 * Writes the newest scalars of each program to a file at every summary. The file is renamed into place, so that a collector
 * reads whole ones. Nothing listens on a port.
 */
export class PrometheusFile extends BaseTracker.with({
  path: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe(
      "File ending in .prom, in the collector's directory; null: metrics.prom in the run's directory.",
    ),
}) {
  readonly #newest = new Map<string, TrackedScalars>();
  #labels: Readonly<Record<string, string>> = {};
  #path = '';

  override begin({ name, jobLogDir }: TrackedRun): void {
    this.#labels = { experiment: name, job_log_dir: jobLogDir };
    this.#path = this.hp.path ?? join(jobLogDir, 'metrics.prom');
  }

  override log(scalars: TrackedScalars): void {
    this.#newest.set(scalars.program, scalars);
    writeWhole(this.#path, prometheusText(gauges(this.#newest.values(), this.#labels)));
  }
}
