/** @file Prometheus' text format 0.0.4. */

/** A sample of a metric. */
export interface PrometheusSample {
  /** Behind the metric's name: `_bucket`, `_sum` and `_count` of histograms. */
  readonly suffix?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric with all its samples. */
export interface PrometheusMetric {
  readonly name: string;
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly help?: string;
  readonly samples: readonly PrometheusSample[];
}

/** A number as the format has it. */
export const prometheusNumber = (value: number): string =>
  Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';

const escaped = (text: string): string => text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n');
const quoted = (text: string): string => `"${escaped(text).replace(/"/g, '\\"')}"`;

function sampleText(name: string, { suffix = '', labels, value }: PrometheusSample): string {
  const all = Object.entries(labels).map(([label, text]) => `${label}=${quoted(text)}`);
  return `${name}${suffix}${all.length === 0 ? '' : `{${all.join(',')}}`} ${prometheusNumber(value)}\n`;
}

/** Metrics as a scrape reads them. */
export function prometheusText(metrics: Iterable<PrometheusMetric>): string {
  const texts = Array.from(metrics, ({ name, type, help, samples }) =>
    [
      ...(help === undefined ? [] : [`# HELP ${name} ${escaped(help)}\n`]),
      `# TYPE ${name} ${type}\n`,
      ...samples.map((sample) => sampleText(name, sample)),
    ].join(''),
  );
  return texts.join('');
}
