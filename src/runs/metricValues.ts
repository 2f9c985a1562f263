/** @file Values of a run's metrics, by program, metric and step, from its metrics.jsonl and goodput.jsonl. */
import { closeSync, fstatSync } from 'node:fs';
import { join } from 'node:path';
import { isThere, linesFromEnd, openRegularFile } from '../files/index.js';
import { parseMetricsLine } from '../summaries/index.js';
import { readGoodput, shareOf } from './goodput.js';

/** A value of a metric. */
export interface MetricValue {
  /** Program and metric: `train/loss`, `eval_test_validation/total_loss`. */
  readonly metric: string;
  readonly step: number;
  readonly value: number;
}

/** Metrics and steps to read. */
export interface MetricSelection {
  /** Whether to read a metric, by program and name. */
  readonly selects: (metric: string) => boolean;
  /** First and last step. */
  readonly steps: readonly [first: number, last: number];
}

/** All numbers in metrics.jsonl, the last one first, in bounded memory. Leaves out a torn line. @throws for no regular file */
export function* metricsFromEnd(directory: string): Generator<MetricValue> {
  const file = openRegularFile(join(directory, 'metrics.jsonl'));
  try {
    for (const { text = '' } of linesFromEnd(file, fstatSync(file).size)) {
      const { program, step, ...fields } = parseMetricsLine(text) ?? {};
      if (typeof program !== 'string' || typeof step !== 'number') continue;
      for (const [field, value] of Object.entries(fields).reverse())
        if (typeof value === 'number')
          yield { metric: `${program}/${field.replace(/^Metrics\//, '')}`, step, value };
    }
  } finally {
    closeSync(file);
  }
}

/**
 * The selected values in the order of steps; of one step in that of writing. A step that a run took again, or an evaluation
 * that was repeated, counts once: the last value stands.
 *
 * @throws for no regular file
 */
export function selectedMetrics(directory: string, { selects, steps }: MetricSelection): MetricValue[] {
  const [first, last] = steps;
  const isSelected = new Map<string, boolean>();
  const values = new Map<string, MetricValue>();
  for (const value of metricsFromEnd(directory)) {
    const { metric, step } = value;
    const selected = isSelected.get(metric) ?? selects(metric);
    isSelected.set(metric, selected);
    const key = `${step} ${metric}`;
    if (selected && step >= first && step <= last && !values.has(key)) values.set(key, value);
  }
  return [...values.values()].reverse().sort((a, b) => a.step - b.step);
}

/** The wall time of a run by use, at its last step, as `run/goodput/…`; none of a run without a record. @throws for no regular file */
export function goodputMetrics(directory: string): MetricValue[] {
  if (!isThere(join(directory, 'goodput.jsonl'))) return [];
  const goodput = readGoodput(directory);
  const uses = Object.entries(goodput.seconds);
  // As precise as the record: what sums and differences add is left out.
  const values = uses.map(([use, value]) => [`${use}_sec`, Number(value.toFixed(4))] as const);
  return [...values, ['share', shareOf(goodput)] as const].map(([name, value]) => ({
    metric: `run/goodput/${name}`,
    step: goodput.step,
    value,
  }));
}
