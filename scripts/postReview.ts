/**
 * @file Posts a config review as a comment on its pull request, or edits the one that is there. Runs in a workflow that
 * may write, on what a workflow left that ran a stranger's code: everything in it is text, and checked. Imports nothing
 * but Node, for nothing is installed there.
 */
import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv, env } from 'node:process';
import { pathToFileURL } from 'node:url';

/** The first line of the comment, by which it is found again. Nobody sees it. */
export const marker = '<!-- luthier config review -->';

/** GitHub takes no longer comments. */
const longestComment = 65_536;
const longestFile = 1_000_000;

/** What the review workflow left. */
export interface Review {
  /** The number of the pull request, as that workflow says. */
  readonly number: number;
  readonly markdown: string;
}

/** What GitHub says of the run that made the review. */
export interface ReviewedRun {
  readonly headSha: string;
  /** Null for a fork that is gone. */
  readonly headRepositoryId: number | null;
}

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

/** A file's text. @throws where it is no plain file: a link could lead to what this workflow alone may read. */
function textOf(file: string): string {
  const stats = lstatSync(file);
  if (!stats.isFile()) throw new Error(`${file} is no plain file.`);
  if (stats.size > longestFile) throw new Error(`${file} has ${stats.size} bytes: too long for a review.`);
  return readFileSync(file, 'utf8');
}

/** Reads what the review workflow left. @throws where it is not what that workflow writes. */
export function readReview(directory: string): Review {
  const number = textOf(join(directory, 'number')).trim();
  if (!/^[1-9]\d{0,9}$/.test(number)) {
    throw new Error(
      `The review is of no pull request: its number is ${JSON.stringify(number.slice(0, 40))}.`,
    );
  }
  return { number: Number(number), markdown: textOf(join(directory, 'comment.md')) };
}

/** The comment: marked, and short enough. */
export function commentOf(markdown: string): string {
  // A marker inside of it would be found as well, though only at the beginning of a comment it counts.
  const body = `${marker}\n${markdown.replaceAll(marker, '').trim()}\n`;
  if (body.length <= longestComment) return body;
  const note = '\n\nThe rest is too long for a comment: the artifact of the workflow has all of it.\n';
  const cut = body.slice(0, longestComment - note.length - 20);
  const whole = cut.slice(0, Math.max(cut.lastIndexOf('\n'), marker.length));
  // What was cut inside of code would take the note into it.
  const isInCode = (whole.match(/^`{3,}/gm) ?? []).length % 2 === 1;
  return `${whole}${isInCode ? '\n```' : ''}${note}`;
}

interface Comment {
  readonly id: number;
  readonly body: string | null;
  readonly user: { readonly login: string } | null;
}

interface PullRequest {
  readonly head: { readonly sha: string; readonly repo: { readonly id: number } | null };
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

const commentsOfPage = 100;

/** The comment that was posted before. */
async function findComment(target: Target, number: number): Promise<Comment | undefined> {
  for (let page = 1; ; page += 1) {
    const path = `issues/${number}/comments?per_page=${commentsOfPage}&page=${page}`;
    const comments = await request<Comment[]>(target, 'GET', path);
    // Whoever knows the marker can write it: a person's comment is left alone.
    const found = comments.find(
      ({ body, user }) => user?.login === target.author && body?.startsWith(marker) === true,
    );
    if (found !== undefined || comments.length < commentsOfPage) return found;
  }
}

/** What became of the comment. `outdated`: the pull request has newer commits, whose own review is to come. */
export type Outcome = 'posted' | 'updated' | 'unchanged' | 'outdated';

/**
 * Posts the review on its pull request, or puts it in the place of the last one.
 *
 * @throws Error where the pull request is not the one that the run was for, or GitHub refuses.
 */
export async function postReview(review: Review, run: ReviewedRun, target: Target): Promise<Outcome> {
  const { number } = review;
  const { head } = await request<PullRequest>(target, 'GET', `pulls/${number}`);
  if ((head.repo?.id ?? null) !== run.headRepositoryId) {
    throw new Error(
      `The review names pull request ${number}, but was made in another repository than that one's.`,
    );
  }
  if (head.sha !== run.headSha) return 'outdated';
  const body = commentOf(review.markdown);
  const comment = await findComment(target, number);
  if (comment === undefined) {
    await request(target, 'POST', `issues/${number}/comments`, { body });
    return 'posted';
  }
  if (comment.body === body) return 'unchanged';
  await request(target, 'PATCH', `issues/comments/${comment.id}`, { body });
  return 'updated';
}

/** The run in the event that started this workflow. @throws where it was another event. */
function runOf(event: unknown): ReviewedRun {
  const run = (event as { workflow_run?: { head_sha?: unknown; head_repository?: { id?: unknown } | null } })
    .workflow_run;
  if (typeof run?.head_sha !== 'string') throw new Error('This is for the event workflow_run.');
  const id = run.head_repository?.id;
  return { headSha: run.head_sha, headRepositoryId: typeof id === 'number' ? id : null };
}

function required(name: string): string {
  const value = env[name];
  if (value === undefined || value === '') throw new Error(`The environment has no ${name}.`);
  return value;
}

async function main(directory: string | undefined): Promise<void> {
  if (directory === undefined)
    throw new Error('node scripts/postReview.ts DIRECTORY: the review is expected there.');
  const review = readReview(directory);
  const run = runOf(JSON.parse(readFileSync(required('GITHUB_EVENT_PATH'), 'utf8')));
  const outcome = await postReview(review, run, {
    api: required('GITHUB_API_URL'),
    repository: required('GITHUB_REPOSITORY'),
    token: required('GITHUB_TOKEN'),
    author: env.REVIEW_AUTHOR ?? 'github-actions[bot]',
  });
  process.stdout.write(`Pull request ${review.number}: ${outcome}.\n`);
}

if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  main(argv[2]).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
}
