/**
 * @file Posting of a config review on its pull request: one comment, which is edited from then on, and a commit status.
 * Runs in a workflow that may write, on a report that a stranger's code made: here the report is parsed, checked against
 * git and the sources, and rendered. Commit, repository and run are those of GitHub's event.
 */
import { lstatSync, readFileSync, realpathSync } from 'node:fs';
import { relative } from 'node:path';
import { argv, cwd, env } from 'node:process';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { UnfitFileError } from '../src/files/fileErrors.js';
import { readRegularFile } from '../src/files/index.js';
import type { DiffReport } from '../src/review/reports/diffReport.js';
import { markdownOf } from '../src/review/reports/markdownReport.js';
import { parseReport, ReportError } from '../src/review/reports/parseReport.js';
import { verdictOf } from '../src/review/reports/verdict.js';
import { readSettings } from '../src/review/settings.js';
import { codeBlock, codeSpan } from '../src/review/text/reportFormat.js';
import { repositoryOf } from '../src/review/versions/gitQueries.js';
import { type Commits, checkReport, factsMarkdown, sourceFacts } from '../src/review/versions/reportCheck.js';
import { UsageError } from '../src/system/text/usageError.js';
import { shortened, visible } from '../src/system/text/visibleText.js';

/** The first line of the comment, by which it is found again. Nobody sees it. */
export const marker = '<!-- luthier config review -->';

const longestReport = 10_000_000;
/** GitHub takes no longer descriptions of statuses. */
const longestDescription = 140;

/** The event `workflow_run`, as far as it is read. */
const eventSchema = z.object({
  workflow_run: z.object({
    head_sha: z.string(),
    head_branch: z.string(),
    /** Null for a fork that is gone. */
    head_repository: z.object({ id: z.int(), owner: z.object({ login: z.string() }) }).nullable(),
    conclusion: z.string(),
    html_url: z.string(),
  }),
  repository: z.object({ html_url: z.string() }),
});
/** What GitHub says of the run that was to make the report. */
export type ReviewEvent = z.infer<typeof eventSchema>;

/** Where and as whom to post. */
export interface Target {
  /** The address of GitHub's REST API. */
  readonly api: string;
  /** `owner/name`. */
  readonly repository: string;
  readonly token: string;
  /** Whose comments may be edited: the account that the token belongs to. */
  readonly author: string;
}

/** What is posted. */
interface Review {
  readonly markdown: string;
  /** `error`: there is no report, or none that holds. */
  readonly state: 'success' | 'failure' | 'error';
  readonly description: string;
}

interface Comment {
  readonly id: number;
  readonly body: string | null;
  readonly user: { readonly login: string } | null;
}

interface PullRequest {
  readonly number: number;
  readonly head: { readonly sha: string; readonly repo: { readonly id: number } | null };
  readonly base: { readonly ref: string };
  readonly labels: readonly { readonly name: string }[];
}

async function request<T>(target: Target, method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${target.api}/repos/${target.repository}/${path}`, {
    method,
    headers: {
      accept: 'application/vnd.github+json',
      authorization: `Bearer ${target.token}`,
      'x-github-api-version': '2022-11-28',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as T;
  throw new Error(`${method} ${path}: GitHub answered ${response.status}: ${text.slice(0, 500)}`);
}

const itemsOfPage = 100;

/** The items of a list, from as many pages as are asked for. */
async function* itemsOf<T>(target: Target, path: string): AsyncGenerator<T> {
  for (let page = 1; ; page += 1) {
    const separator = path.includes('?') ? '&' : '?';
    const items = await request<T[]>(
      target,
      'GET',
      `${path}${separator}per_page=${itemsOfPage}&page=${page}`,
    );
    yield* items;
    if (items.length < itemsOfPage) return;
  }
}

/** The open pull requests of the branch that was reviewed: the report is asked for no number. */
async function pullsOf({ workflow_run: run }: ReviewEvent, target: Target): Promise<PullRequest[]> {
  const { head_branch: branch, head_repository: repository } = run;
  if (repository === null) return [];
  const head = encodeURIComponent(`${repository.owner.login}:${branch}`);
  const pulls: PullRequest[] = [];
  for await (const pull of itemsOf<PullRequest>(target, `pulls?state=open&head=${head}`))
    if (pull.head.repo?.id === repository.id) pulls.push(pull);
  return pulls;
}

/** What the run left: a report, something else, or nothing. */
function leftIn(file: string): DiffReport | ReportError | undefined {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats === undefined || stats.size === 0) return undefined;
  try {
    // A link could lead to what this workflow alone may read.
    if (!stats.isFile()) throw new ReportError('The report is no plain file.');
    return parseReport(readRegularFile(file, longestReport).toString());
  } catch (error) {
    if (error instanceof UnfitFileError) return new ReportError(`The report is none: ${error.message}.`);
    if (error instanceof ReportError) return error;
    throw error;
  }
}

/** What to say of a pull request that left its base at `commits.base`. The thresholds are the default branch's. */
function reviewOf(
  left: ReturnType<typeof leftIn>,
  event: ReviewEvent,
  { labels }: PullRequest,
  commits: Commits,
  project: string,
): Review {
  const { conclusion, html_url: url, head_sha: head } = event.workflow_run;
  const none = (title: string, why: string): Review => ({
    markdown: `### ⚠️ ${codeSpan(head.slice(0, 7))}: ${title}\n\n${why}\n\n[The run](${url}) tells more.`,
    state: 'error',
    description: title,
  });
  if (left === undefined)
    return none('no config review', `Its run ended as ${codeSpan(conclusion)}, without a report.`);
  try {
    if (left instanceof ReportError) throw left;
    const facts = sourceFacts(project, commits);
    checkReport(left, commits, facts);
    const report = { ...left, thresholds: readSettings(project).thresholds };
    const verdict = verdictOf(report, labels);
    const context = {
      repository: event.repository.html_url,
      folder: relative(repositoryOf(project).root, realpathSync(project)),
      head,
      run: url,
      pictures: 'config-review',
      labels,
    };
    return {
      markdown: `${markdownOf(report, context)}\n\n${factsMarkdown(facts)}`,
      state: verdict.fails ? 'failure' : 'success',
      description: verdict.line,
    };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const why = 'Its report does not fit the commits, or is not of the form that the default branch knows:';
    return none('config review refused', `${why}\n\n${codeBlock(visible(error.message), 'text')}`);
  }
}

/** Puts the review in the place of the last one, if there is one. */
async function comment({ number }: PullRequest, { markdown }: Review, target: Target): Promise<void> {
  const body = `${marker}\n${markdown}\n`;
  for await (const { id, body: old, user } of itemsOf<Comment>(target, `issues/${number}/comments`)) {
    // Whoever knows the marker can write it: a person's comment is left alone.
    if (user?.login !== target.author || old?.startsWith(marker) !== true) continue;
    if (old !== body) await request(target, 'PATCH', `issues/comments/${id}`, { body });
    return;
  }
  await request(target, 'POST', `issues/${number}/comments`, { body });
}

/** What became of each pull request, in words. */
export async function postReview(
  file: string,
  event: ReviewEvent,
  target: Target,
  project: string,
): Promise<string[]> {
  const { head_sha: head, html_url: url } = event.workflow_run;
  const pulls = await pullsOf(event, target);
  if (pulls.length === 0) return ['No open pull request is of this branch.'];
  const { git } = repositoryOf(project);
  const current = pulls
    .filter((pull) => pull.head.sha === head)
    .map((pull) => ({ pull, base: git('merge-base', head, `refs/remotes/origin/${pull.base.ref}`).trim() }));
  if (current.length === 0) return [`The pull request has newer commits than ${head}.`];
  const left = leftIn(file);
  // One branch may lead to several: the report is for those that left their base where it says.
  const meant =
    left === undefined || left instanceof ReportError
      ? []
      : current.filter(({ base }) => base === left.old.commit);
  const said: string[] = [];
  for (const { pull, base } of meant.length > 0 ? meant : current) {
    const review = reviewOf(left, event, pull, { base, head }, project);
    await comment(pull, review, target);
    await request(target, 'POST', `statuses/${head}`, {
      state: review.state,
      // A review for one base says nothing of another.
      context: `config review (${pull.base.ref})`,
      description: shortened(review.description, longestDescription),
      target_url: url,
    });
    said.push(`Pull request ${pull.number}: ${review.state}, ${review.description}.`);
  }
  return said;
}

function required(name: string): string {
  const value = env[name];
  if (value === undefined || value === '') throw new Error(`The environment has no ${name}.`);
  return value;
}

/** The event that started this workflow. @throws where it was another one. */
function readEvent(): ReviewEvent {
  const { success, data, error } = eventSchema.safeParse(
    JSON.parse(readFileSync(required('GITHUB_EVENT_PATH'), 'utf8')),
  );
  if (success) return data;
  throw new Error(`This is for the event workflow_run:\n${z.prettifyError(error)}`);
}

async function main(file: string | undefined): Promise<void> {
  if (file === undefined) throw new Error('tsx scripts/postReview.ts FILE: the report is expected there.');
  const target = {
    api: required('GITHUB_API_URL'),
    repository: required('GITHUB_REPOSITORY'),
    token: required('GITHUB_TOKEN'),
    author: env.REVIEW_AUTHOR ?? 'github-actions[bot]',
  };
  for (const line of await postReview(file, readEvent(), target, cwd())) process.stdout.write(`${line}\n`);
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  main(argv[2]).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
}
