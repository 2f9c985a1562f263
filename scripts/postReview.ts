/**
 * @file Posting of a config review on its pull request: one comment, which is edited from then on, and a commit status.
 * Runs in a workflow that may write, on a report that a stranger's code made: commit, repository and run are those of
 * GitHub's event. However the review ends, it takes the place of the last one, and the commit has a status.
 */
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { argv, cwd, env } from 'node:process';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { Child, ChildError } from '../src/system/child.js';
import { shortened } from '../src/system/text/visibleText.js';
import { type Review, type ReviewRequest, refusal } from './renderReview.js';

/** The first line of the comment, by which it is found again. Nobody sees it. */
export const marker = '<!-- luthier config review -->';

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

/** Seconds that rendering may take: less than the workflow's limit, after which nothing could be posted. */
const longestRendering = 300;

/** Makes reviews in a process of its own. Where that fails, each says so. */
export async function renderedApart(request: ReviewRequest, seconds = longestRendering): Promise<Review[]> {
  const worker = new URL(`./renderReviewWorker${extname(import.meta.url)}`, import.meta.url);
  const child = new Child<ReviewRequest, Review[]>(worker, { flags: ['--max-old-space-size=4096'] });
  try {
    child.send(request);
    return await child.receive(seconds * 1000);
  } catch (error) {
    if (!(error instanceof ChildError)) throw error;
    return request.pulls.map((pull) => refusal(request, pull, error.message));
  } finally {
    await child.kill();
  }
}

/** GitHub takes no longer comments. */
const longestComment = 65_536;

/** Puts the review in the place of the last one, if there is one. */
async function comment({ number, markdown }: Review, target: Target): Promise<void> {
  const body = `${marker}\n${markdown}\n`;
  for await (const { id, body: old, user } of itemsOf<Comment>(target, `issues/${number}/comments`)) {
    // Whoever knows the marker can write it: a person's comment is left alone.
    if (user?.login !== target.author || old?.startsWith(marker) !== true) continue;
    if (old !== body) await request(target, 'PATCH', `issues/comments/${id}`, { body });
    return;
  }
  await request(target, 'POST', `issues/${number}/comments`, { body });
}

/** Sets the status of the reviewed commit. */
const setStatus = (head: string, { ref, state, description }: Review, url: string, target: Target) =>
  request(target, 'POST', `statuses/${head}`, {
    state,
    // A review for one base says nothing of another.
    context: `config review (${ref})`,
    description: shortened(description, longestDescription),
    target_url: url,
  });

/** What became of each pull request, in words. @throws where GitHub takes no comment or status, of any */
export async function postReview(
  file: string,
  event: ReviewEvent,
  target: Target,
  project: string,
  render: (request: ReviewRequest) => Review[] | Promise<Review[]> = renderedApart,
): Promise<string[]> {
  const { head_sha: head, html_url: run, conclusion } = event.workflow_run;
  const pulls = await pullsOf(event, target);
  if (pulls.length === 0) return ['No open pull request is of this branch.'];
  const current = pulls
    .filter((pull) => pull.head.sha === head)
    .map(({ number, base, labels }) => ({ number, ref: base.ref, labels }));
  if (current.length === 0) return [`The pull request has newer commits than ${head}.`];
  const asked = {
    file,
    project,
    head,
    conclusion,
    run,
    repository: event.repository.html_url,
    pulls: current,
  };
  const said: string[] = [];
  const errors: unknown[] = [];
  for (const rendered of await render(asked)) {
    const isLong = rendered.markdown.length > longestComment - 100;
    const review = isLong
      ? refusal(asked, { ...rendered, labels: [] }, 'The comment is longer than GitHub allows.')
      : rendered;
    let posted: Review = review;
    try {
      await comment(review, target);
    } catch (error) {
      errors.push(error);
      // The last comment still stands: the status must not.
      posted = { ...review, state: 'error', description: 'GitHub did not take the comment' };
    }
    await setStatus(head, posted, run, target).catch((error: unknown) => errors.push(error));
    said.push(`Pull request ${posted.number}: ${posted.state}, ${posted.description}.`);
  }
  if (errors.length > 0) throw errors[0];
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
