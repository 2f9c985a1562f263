/**
 * @file Checks of a report that a stranger's code made, by git and source text: whether it is of the reviewed commits, and
 * accounts for every experiment that they declare. Nothing of the commits is run.
 */
import { realpathSync } from 'node:fs';
import { shortened, visible } from '../../system/text/index.js';
import type { DiffReport } from '../reports/diffReport.js';
import { ReportError } from '../reports/parseReport.js';
import { codeSpan, counted } from '../text/reportFormat.js';
import { filesBetween, repositoryOf } from './gitQueries.js';
import { Sources } from './sources.js';
import { treeAt } from './versionTree.js';
import { addForeignWorktree } from './worktree.js';

/** The whole hashes of the commits that are compared. */
export interface Commits {
  readonly base: string;
  readonly head: string;
}

/** Facts about a change from source text. */
export interface SourceFacts {
  /** The experiments of either version. */
  readonly experiments: ReadonlySet<string>;
  /** Those that only one version declares, so that they can't be unchanged. */
  readonly unpaired: readonly string[];
  /** How many of them load a changed file, in either version. */
  readonly reached: number;
  /** The changed files that they load, from the project's folder. */
  readonly files: readonly string[];
}

/** Reads the sources of two commits of the repository around `project`. */
export function sourceFacts(project: string, { base, head }: Commits): SourceFacts {
  const folder = realpathSync(project);
  const repository = repositoryOf(folder);
  const changed = new Set(filesBetween(repository, base, head));
  const worktrees = [base, head].map((commit) => addForeignWorktree(repository, commit));
  try {
    const user = { root: repository.root, project: folder };
    const [old, now] = worktrees.map(({ root }) => new Sources(treeAt(root, user), changed)) as [
      Sources,
      Sources,
    ];
    const names = new Set([...old.experiments.keys(), ...now.experiments.keys()]);
    const loaded = [...names].map((name) => [...old.changedFilesOf(name), ...now.changedFilesOf(name)]);
    return {
      experiments: names,
      unpaired: [...names].filter((name) => !(old.experiments.has(name) && now.experiments.has(name))),
      reached: loaded.filter((files) => files.length > 0).length,
      files: [...new Set(loaded.flat())].sort(),
    };
  } finally {
    for (const worktree of worktrees) worktree.remove();
  }
}

/** @throws ReportError where the report is of other commits, or leaves out or invents experiments. */
export function checkReport(report: DiffReport, { base, head }: Commits, facts: SourceFacts): void {
  for (const [side, expected] of [
    ['old', base],
    ['new', head],
  ] as const) {
    const { commit } = report[side];
    if (commit !== expected)
      throw new ReportError(`report.${side}.commit: expected ${expected}, got ${commit ?? 'none'}.`);
  }
  const rows = report.experiments.map(({ name }) => name);
  // A row under a new name also covers the old one, if that is gone.
  const formers = report.experiments.flatMap(({ former }) => former?.name ?? []);
  const reported = new Set([...rows, ...formers.filter((name) => facts.unpaired.includes(name))]);
  const problem = (what: string, names: readonly string[]): void => {
    if (names.length > 0) throw new ReportError(`report.experiments: ${what}: ${names.join(', ')}.`);
  };
  problem(
    'more than one row for',
    rows.filter((name, i) => rows.indexOf(name) !== i),
  );
  problem(
    'neither commit declares',
    rows.filter((name) => !facts.experiments.has(name)),
  );
  problem(
    'no row for names that only one commit declares',
    facts.unpaired.filter((name) => !reported.has(name)),
  );
  const rest = facts.experiments.size - reported.size;
  if (report.unchanged + report.untouched !== rest) {
    throw new ReportError(
      `report.unchanged: the commits declare ${counted(facts.experiments.size, 'experiment')}, the report has ` +
        `${counted(reported.size, 'row')}; expected ${rest} unchanged or untouched, got ` +
        `${report.unchanged + report.untouched}.`,
    );
  }
}

const mostFiles = 8;

/** Facts to check a report against, in Markdown. */
export function factsMarkdown({ experiments, reached, files }: SourceFacts): string {
  const shown = files.slice(0, mostFiles).map((file) => codeSpan(visible(shortened(file))));
  const more = files.length > mostFiles ? [`${files.length - mostFiles} more`] : [];
  const found =
    files.length === 0
      ? 'no experiment loads a changed file'
      : `${reached} of ${counted(experiments.size, 'experiment')} load ` +
        `${counted(files.length, 'changed file')}: ${[...shown, ...more].join(', ')}`;
  return `The pull request's own code evaluated its experiments. By git and source text alone, ${found}.`;
}
