/** @file Groups of experiments with equal changes. */

import type { Failure } from '../versions/protocol.js';
import {
  type CheckpointEffect,
  type Computed,
  type ConstantChange,
  type ExperimentReport,
  type FieldChange,
  type LearningRateChange,
  type RuleChange,
  type Status,
  statuses,
  type Uncompared,
} from './diffReport.js';

/** Changes common to exactly these experiments. */
export interface ChangeGroup {
  readonly experiments: readonly string[];
  /** The base class of added experiments; absent for others. */
  readonly against?: string;
  readonly constants: readonly ConstantChange[];
  readonly fields: readonly FieldChange[];
}

/** Every change once, with its experiments, without removed ones; changes of more experiments come first. */
export function groupChanges(all: readonly ExperimentReport[]): ChangeGroup[] {
  const reports = all.filter(({ status }) => status !== 'removed');
  const bySet = new Map<
    string,
    { experiments: string[]; against?: string; constants: ConstantChange[]; fields: FieldChange[] }
  >();
  const basesOf = new Map(reports.map(({ name, against }) => [name, against]));
  const groupFor = (experiments: string[]) => {
    const key = experiments.join('\n');
    let group = bySet.get(key);
    if (group === undefined) {
      const against = basesOf.get(experiments[0]!);
      group = { experiments, ...(against === undefined ? {} : { against }), constants: [], fields: [] };
      bySet.set(key, group);
    }
    return group;
  };
  for (const [change, experiments] of withExperiments(reports, ({ constants }) => constants))
    groupFor(experiments).constants.push(change);
  for (const [change, experiments] of withExperiments(reports, ({ fields }) => fields))
    groupFor(experiments).fields.push(change);
  return widestFirst([...bySet.values()]);
}

/** How runs go on, each way once. */
export function groupCheckpoints(
  reports: readonly ExperimentReport[],
): { experiments: readonly string[]; effect: CheckpointEffect }[] {
  const effects = withExperiments(reports, ({ checkpoints }) =>
    checkpoints === undefined ? [] : [checkpoints],
  );
  return widestFirst(effects.map(([effect, experiments]) => ({ effect, experiments })));
}

/** Rules that reach other variables, each once. */
export function groupRules(
  reports: readonly ExperimentReport[],
): { experiments: readonly string[]; rules: RuleChange[] }[] {
  const found = withExperiments(reports, ({ against, effects }) =>
    effects?.rules === undefined || against !== undefined ? [] : [[...effects.rules]],
  );
  return widestFirst(found.map(([rules, experiments]) => ({ experiments, rules })));
}

/** Changes of learning rates, once for all experiments with the same change. */
export function groupLearningRates(
  reports: readonly ExperimentReport[],
): { experiments: readonly string[]; change: LearningRateChange }[] {
  const found = withExperiments(reports, ({ learningRates }) => (learningRates ? [learningRates] : []));
  return widestFirst(found.map(([change, experiments]) => ({ change, experiments })));
}

/** Computed differences of equal configs, once for all their experiments. */
export function groupComputed(
  reports: readonly ExperimentReport[],
): { experiments: readonly string[]; computed: Computed }[] {
  const found = withExperiments(reports, ({ computed }) =>
    computed === undefined || computed.differs.length + (computed.data?.length ?? 0) === 0
      ? []
      : [{ ...computed, uncompared: [] }],
  );
  return widestFirst(found.map(([computed, experiments]) => ({ computed, experiments })));
}

/** Parts that could not be compared, each reason once. */
export function groupUncompared(
  reports: readonly ExperimentReport[],
): { experiments: readonly string[]; uncompared: Uncompared }[] {
  const found = withExperiments(reports, ({ computed }) => computed?.uncompared ?? []);
  return widestFirst(found.map(([uncompared, experiments]) => ({ uncompared, experiments })));
}

/** Errors of experiments of a status, once if they differ in nothing but names. */
export interface ErrorGroup {
  readonly experiments: readonly string[];
  readonly status: Status;
  readonly error: Failure;
  /** The former error, if it was another one. */
  readonly oldError?: Failure;
}

/** Errors of the new version in the order of the reports. */
export function groupErrors(reports: readonly ExperimentReport[]): ErrorGroup[] {
  const groups = new Map<string, ErrorGroup & { experiments: string[] }>();
  for (const { name, status, newError, oldError } of reports) {
    if (newError === undefined) continue;
    const isOther = oldError !== undefined && oldError.message !== newError.message;
    const before = isOther ? { oldError } : {};
    const own = name.slice(name.lastIndexOf('.') + 1);
    const key = JSON.stringify([status, newError, before]).replaceAll(own, '…');
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { experiments: [name], status, error: newError, ...before });
    else known.experiments.push(name);
  }
  return [...groups.values()];
}

function withExperiments<C>(
  reports: readonly ExperimentReport[],
  changesOf: (report: ExperimentReport) => readonly C[],
): [C, string[]][] {
  const known = new Map<string, [C, string[]]>();
  for (const report of reports) {
    for (const change of changesOf(report)) {
      // A difference from a base class is not the same change as one from an old version.
      const key = JSON.stringify([change, report.status === 'added', report.against]);
      const same = known.get(key);
      if (same === undefined) known.set(key, [change, [report.name]]);
      else if (same[1].at(-1) !== report.name) same[1].push(report.name);
    }
  }
  return [...known.values()];
}

const { compare: compareNames } = new Intl.Collator('en', { numeric: true });

/** Experiments by status, then by name. */
export function inOrder(reports: readonly ExperimentReport[]): ExperimentReport[] {
  return [...reports].sort(
    (a, b) => statuses.indexOf(a.status) - statuses.indexOf(b.status) || compareNames(a.name, b.name),
  );
}

/** Groups of more experiments first, then by name. */
function widestFirst<G extends { readonly experiments: readonly string[] }>(groups: readonly G[]): G[] {
  return [...groups].sort(
    (a, b) =>
      b.experiments.length - a.experiments.length ||
      compareNames(a.experiments.join('\n'), b.experiments.join('\n')),
  );
}
