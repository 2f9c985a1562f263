/** @file Diff reports made by hand, for tests of what is said of them. */
import type { DiffReport, ExperimentReport, Status } from '../../../src/review/reports/diffReport.js';

/** A report on these experiments. */
export function reportWith(
  experiments: readonly ExperimentReport[],
  rest: Partial<DiffReport> = {},
): DiffReport {
  return {
    format: 'luthier-config-diff',
    version: 1,
    old: { label: 'main (abc1234)', commit: 'abc1234'.padEnd(40, '0') },
    new: { label: 'working tree' },
    experiments,
    declarations: [],
    thresholds: [],
    unchanged: 0,
    untouched: 0,
    notes: [],
    ...rest,
  };
}

/** What became of an experiment. */
export function experimentOf(status: Status, rest: Partial<ExperimentReport> = {}): ExperimentReport {
  return { name: 'lm.Small', status, constants: [], fields: [], ...rest };
}
