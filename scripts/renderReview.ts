/**
 * @file Rendering of config reviews: a report that a stranger's code made is parsed, checked against git and the sources, and
 * written as Markdown. Whatever is wrong with it, with the commits or with their files, there is a review that says so.
 */
import { lstatSync, realpathSync } from 'node:fs';
import { relative } from 'node:path';
import { UnfitFileError } from '../src/files/fileErrors.js';
import { readRegularFile } from '../src/files/index.js';
import type { DiffReport } from '../src/review/reports/diffReport.js';
import { markdownOf } from '../src/review/reports/markdownReport.js';
import { parseReport, ReportError } from '../src/review/reports/parseReport.js';
import { verdictOf } from '../src/review/reports/verdict.js';
import { readSettings } from '../src/review/settings.js';
import { codeBlock, codeSpan } from '../src/review/text/reportFormat.js';
import { GitError, repositoryOf } from '../src/review/versions/gitQueries.js';
import { checkedReport } from '../src/review/versions/reportCheck.js';
import { type Commits, factsMarkdown, sourceFacts } from '../src/review/versions/sourceFacts.js';
import { UsageError } from '../src/system/text/usageError.js';
import { shortened, visible } from '../src/system/text/visibleText.js';

const longestReport = 10_000_000;
const longestReason = 2000;

/** A pull request under review. */
export interface ReviewedPull {
  readonly number: number;
  /** The branch that it is to be merged into. */
  readonly ref: string;
  readonly labels: readonly { readonly name: string }[];
}

/** What is to be reviewed, as GitHub tells. */
export interface ReviewRequest {
  /** The report, if the run left one. */
  readonly file: string;
  /** The folder of a clone that has the commit. */
  readonly project: string;
  readonly head: string;
  /** What the run that was to make the report ended as, and its address. */
  readonly conclusion: string;
  readonly run: string;
  /** The repository's address. */
  readonly repository: string;
  readonly pulls: readonly ReviewedPull[];
}

/** What is posted on a pull request. */
export interface Review {
  readonly number: number;
  readonly ref: string;
  readonly markdown: string;
  /** `error`: there is no report, or none that holds. */
  readonly state: 'success' | 'failure' | 'error';
  readonly description: string;
}

/** A review that says why there is none. */
function noReview(
  { head, run }: ReviewRequest,
  { number, ref }: ReviewedPull,
  title: string,
  why: string,
): Review {
  return {
    number,
    ref,
    markdown: `### ⚠️ ${codeSpan(head.slice(0, 7))}: ${title}\n\n${why}\n\n[The run](${run}) tells more.`,
    state: 'error',
    description: title,
  };
}

/** A review that says why a report is not shown. */
export function refusal(
  request: ReviewRequest,
  pull: ReviewedPull,
  reason: string,
  what = 'It could not be checked against the commits:',
): Review {
  const text = visible(shortened(reason.trim(), longestReason));
  return noReview(request, pull, 'config review refused', `${what}\n\n${codeBlock(text, 'text')}`);
}

/** What the run left: a report, something else, or nothing. */
function leftIn(file: string): DiffReport | UsageError | undefined {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats === undefined || stats.size === 0) return undefined;
  try {
    // A link could lead to what this workflow alone may read.
    if (!stats.isFile()) throw new ReportError('The report is no plain file.');
    return parseReport(readRegularFile(file, longestReport).toString());
  } catch (error) {
    if (error instanceof UnfitFileError) return new ReportError(`The report is none: ${error.message}.`);
    if (error instanceof UsageError) return error;
    return new ReportError(`The report cannot be read: ${(error as Error).message}`);
  }
}

/** Where a commit left a branch. @throws UsageError where it did not */
function baseOf(project: string, head: string, ref: string): string {
  try {
    return repositoryOf(project).git('merge-base', head, `refs/remotes/origin/${ref}`).trim();
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    throw new UsageError(`${head.slice(0, 7)} has no commit in common with ${ref}.`);
  }
}

/** What to say of a pull request that left its base at `commits.base`. The thresholds are the default branch's. */
function reviewOf(report: DiffReport, request: ReviewRequest, pull: ReviewedPull, commits: Commits): Review {
  const { project, run, repository, head } = request;
  const { number, ref, labels } = pull;
  const facts = sourceFacts(project, commits, report.loaded);
  const checked = checkedReport(report, commits, facts);
  const label = `${ref} (${commits.base.slice(0, 7)})`;
  const known = {
    ...checked,
    old: { ...checked.old, label },
    thresholds: readSettings(project).thresholds,
  };
  const verdict = verdictOf(known, labels);
  const context = {
    repository,
    folder: relative(repositoryOf(project).root, realpathSync(project)),
    head,
    run,
    pictures: 'config-review',
    labels,
    closing: factsMarkdown(facts),
  };
  return {
    number,
    ref,
    markdown: markdownOf(known, context),
    state: verdict.fails ? 'failure' : 'success',
    description: verdict.line,
  };
}

/** Reviews of those of the pull requests that the report is meant for: of all, where there is none that holds. */
export function reviewsOf(request: ReviewRequest): Review[] {
  const { file, project, head, conclusion, pulls } = request;
  const left = leftIn(file);
  const unfit = 'Its report does not fit the commits, or is not of the form that the default branch knows:';
  const all = pulls.map((pull): { pull: ReviewedPull; base: string | Review } => {
    try {
      return { pull, base: baseOf(project, head, pull.ref) };
    } catch (error) {
      return { pull, base: refusal(request, pull, (error as Error).message) };
    }
  });
  const commit = left === undefined || left instanceof UsageError ? undefined : left.old.commit;
  // One branch may lead to several: the report is for those that left their base where it says.
  const meant = all.filter(({ base }) => base === commit);
  return (meant.length > 0 ? meant : all).map(({ pull, base }): Review => {
    if (left === undefined)
      return noReview(
        request,
        pull,
        'no config review',
        `Its run ended as ${codeSpan(conclusion)}, without a report.`,
      );
    if (typeof base !== 'string') return base;
    if (left instanceof UsageError) return refusal(request, pull, left.message, unfit);
    try {
      return reviewOf(left, request, pull, { base, head });
    } catch (error) {
      const { message } = error as Error;
      return refusal(request, pull, message, error instanceof UsageError ? unfit : undefined);
    }
  });
}
