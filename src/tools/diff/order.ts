/** @file The order in which reports tell things: the same for the same change. */
import { type ExperimentReport, statuses } from './types.js';

const { compare: compareNames } = new Intl.Collator('en', { numeric: true });

/** Experiments by status, then by name. */
export function inOrder(reports: readonly ExperimentReport[]): ExperimentReport[] {
  return [...reports].sort(
    (a, b) => statuses.indexOf(a.status) - statuses.indexOf(b.status) || compareNames(a.name, b.name),
  );
}

/** What concerns more experiments first, then by their names. */
export function widestFirst<G extends { readonly experiments: readonly string[] }>(
  groups: readonly G[],
): G[] {
  return [...groups].sort(
    (a, b) =>
      b.experiments.length - a.experiments.length ||
      compareNames(a.experiments.join('\n'), b.experiments.join('\n')),
  );
}
