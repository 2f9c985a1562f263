/**
 * @file Checks of a report that a stranger's code made, by git and source text: whether it is of the reviewed commits,
 * accounts for every experiment that they declare, and says of none what git knows better.
 */
import { inOrder } from '../reports/changeGroups.js';
import type { DiffReport, ExperimentReport, Status } from '../reports/diffReport.js';
import { ReportError } from '../reports/parseReport.js';
import { counted } from '../text/reportFormat.js';
import type { Commits, SourceFacts } from './sourceFacts.js';

/** Statuses of experiments that both commits have, and of those that had another name. */
const ofBoth: readonly Status[] = [
  'broken',
  'changed',
  'mended',
  'renamed',
  'redeclared',
  'uncompared',
  'failing',
];

/**
 * The report, with git's word in place of its own wherever git has one.
 *
 * @throws ReportError where the report is of other commits, leaves out or invents experiments, or gives one a status that
 * contradicts git
 */
export function checkedReport(report: DiffReport, { base, head }: Commits, facts: SourceFacts): DiffReport {
  for (const [side, expected] of [
    ['old', base],
    ['new', head],
  ] as const) {
    const { commit } = report[side];
    if (commit !== expected)
      throw new ReportError(`report.${side}.commit: expected ${expected}, got ${commit ?? 'none'}.`);
  }
  checkNames(report, facts);
  for (const row of report.experiments) checkStatus(row, facts);
  const rows = report.experiments.map((row) => withGitsWord(row, facts));
  const unproved = rows.filter(
    ({ former }) => former !== undefined && former.evidence.length === 0 && facts.removed.has(former.name),
  );
  const total = report.unchanged + report.untouched;
  const untouched = Math.min(report.untouched, numUnreached(facts));
  return {
    ...report,
    experiments: inOrder([...rows, ...unproved.map(({ former }) => removedRow(former!.name, facts))]),
    unchanged: total - untouched,
    untouched,
    notes: [
      ...unproved.map(
        ({ name, former }) =>
          `${former!.name} is gone by git. That it is ${name} now, only the pull request's own code says.`,
      ),
      ...report.notes,
    ],
  };
}

/** How many experiments of both commits load no changed file, by text. */
function numUnreached({ base, head, reached }: SourceFacts): number {
  return [...head].filter((name) => base.has(name) && !reached.has(name)).length;
}

function checkNames(report: DiffReport, { base, head, removed, problems }: SourceFacts): void {
  const all = new Set([...base, ...head]);
  const rows = report.experiments.map(({ name }) => name);
  // A row under a new name also covers the old one, if that is gone.
  const formers = report.experiments.flatMap(({ former }) => former?.name ?? []);
  const covered = formers.filter((name) => removed.has(name));
  const reported = new Set([...rows, ...covered]);
  const unread = problems.length === 0 ? '' : `\nNot read: ${problems.join('\n')}`;
  const problem = (what: string, names: readonly string[]): void => {
    if (names.length > 0) throw new ReportError(`report.experiments: ${what}: ${names.join(', ')}.${unread}`);
  };
  const repeated = (names: readonly string[]) => names.filter((name, i) => names.indexOf(name) !== i);
  problem('more than one row for', repeated([...rows, ...covered]));
  problem(
    'neither commit declares',
    rows.filter((name) => !all.has(name)),
  );
  problem(
    'no row for names that only one commit declares',
    [...all].filter((name) => !(base.has(name) && head.has(name)) && !reported.has(name)),
  );
  const rest = all.size - reported.size;
  if (report.unchanged + report.untouched !== rest) {
    throw new ReportError(
      `report.unchanged: the commits declare ${counted(all.size, 'experiment')}, the report has ` +
        `${counted(reported.size, 'row')}; expected ${rest} unchanged or untouched, got ` +
        `${report.unchanged + report.untouched}.${unread}`,
    );
  }
}

function checkStatus({ name, status, former }: ExperimentReport, { base, head }: SourceFacts): void {
  const [isOld, isNew] = [base.has(name), head.has(name)];
  const refuse = (where: string, expected: readonly string[], got: string): never => {
    throw new ReportError(
      `report.experiments: ${name}, which ${where}: expected ${expected.join(', ')}, got ${got}.`,
    );
  };
  if (former !== undefined && (isOld || !base.has(former.name)))
    refuse(isOld ? 'the base declares' : 'the head alone declares', ['no other former name'], former.name);
  const [where, expected] = !isNew
    ? (['the base alone declares', ['removed']] as const)
    : isOld
      ? (['both commits declare', ofBoth] as const)
      : former === undefined
        ? (['the head alone declares', ['added', 'broken']] as const)
        : ([`was ${former.name}`, ['moved', ...ofBoth]] as const);
  if (!(expected as readonly Status[]).includes(status)) refuse(where, expected, status);
}

/** A row in which texts of the base, and what shows a rename, are git's. */
function withGitsWord(row: ExperimentReport, facts: SourceFacts): ExperimentReport {
  const { name, former, was: _, ...rest } = row;
  if (facts.removed.has(name)) return { ...rest, ...removedRow(name, facts) };
  if (former === undefined) return { name, ...rest };
  const { rename, evidence } = facts.renameOf(name, former.name);
  // That configs are equal, the text of an equal class shows.
  const shown = former.evidence.filter(
    (each) => evidence.has(each) || (each === 'configs' && evidence.size > 0),
  );
  return { name, ...rest, former: { ...rename, evidence: shown } };
}

function removedRow(name: string, { removed }: SourceFacts): ExperimentReport {
  const { was, constants } = removed.get(name)!;
  return { name, status: 'removed', was, constants, fields: [] };
}
