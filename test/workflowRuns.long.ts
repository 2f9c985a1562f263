/** @file The workflows of a config review, run step by step on pull requests to a repository and a GitHub of the test's own. */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { temporaryDirectory } from './command.js';
import { isShort } from './faults/campaign.js';
import { family } from './review/repository.js';
import { FakeGithub } from './scripts/github.js';
import { typescriptEnvironment } from './typescriptEnvironment.js';
import { type JobResult, type RunContext, runJob } from './workflowJob.js';
import { readWorkflow } from './workflows.js';

const library = fileURLToPath(new URL('..', import.meta.url));
const [review, comment] = ['config-review.yml', 'config-review-comment.yml'].map(readWorkflow);
const token = 'a-token';
const github = new FakeGithub(token);
const address = 'https://github.example/someone/luthier';
let api: string;

const remote = temporaryDirectory();
const clone = temporaryDirectory();
const git = (...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=T', '-c', 'user.email=t@example.org', ...args], {
    cwd: clone,
    encoding: 'utf8',
  }).trim();

/** Commits files on a branch from main, as a pull request's, and gives the commit. */
function push(number: number, files: Readonly<Record<string, string>>): string {
  git('checkout', '--quiet', '-B', `pull-${number}`, 'origin/main');
  for (const [name, text] of Object.entries(files)) writeFileSync(join(clone, name), text);
  git('add', '.');
  git('commit', '--quiet', `--message=change ${number}`);
  git('push', '--quiet', '--force', 'origin', `HEAD:refs/pull/${number}/head`);
  return git('rev-parse', 'HEAD');
}

const small = family
  .replace("'luthier'", "'../src/index.js'")
  .concat('\nexport class One extends Family {}\nexport class Two extends Family {}\n');
const wider = small.replace('default(16)', 'default(32)');

/** Programs that are not the runner's: `npm ci` links the packages that are here. */
function programs(): string {
  const folder = temporaryDirectory();
  const npm = join(folder, 'npm');
  writeFileSync(
    npm,
    `#!/bin/sh\n[ "$1" = ci ] && exec ln -s ${join(library, 'node_modules')} node_modules\nexit 1\n`,
  );
  chmodSync(npm, 0o755);
  return folder;
}

const env = typescriptEnvironment({
  PATH: [programs(), process.env.PATH].join(delimiter),
  GITHUB_TOKEN: '',
}) as Record<string, string>;

beforeAll(async () => {
  api = await github.start();
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', remote]);
  // As on GitHub.
  execFileSync('git', ['-C', remote, 'config', 'uploadpack.allowAnySHA1InWant', 'true']);
  execFileSync('git', ['clone', '--quiet', remote, clone], { stdio: 'ignore' });
  const manifest = JSON.parse(readFileSync(join(library, 'package.json'), 'utf8')) as object;
  const thresholds = [{ figure: 'parameters', moreThan: '10%', needsLabel: 'costs-more' }];
  for (const name of ['src', 'scripts', 'tsconfig.json'])
    cpSync(join(library, name), join(clone, name), { recursive: true });
  mkdirSync(join(clone, 'experiments'));
  writeFileSync(join(clone, 'experiments/small.ts'), small);
  writeFileSync(join(clone, '.gitignore'), 'node_modules\nout\n');
  writeFileSync(
    join(clone, 'package.json'),
    JSON.stringify({ ...manifest, luthier: { review: { thresholds } } }),
  );
  git('add', '.');
  git('commit', '--quiet', '--message=base');
  git('push', '--quiet', 'origin', 'HEAD:main');
  git('fetch', '--quiet', 'origin');
});

afterAll(() => github.stop());

let artifacts: string;
beforeEach(() => {
  artifacts = temporaryDirectory();
  github.pulls.length = 0;
});

interface PullRequest {
  readonly number: number;
  readonly sha: string;
  /** Whose fork it comes from. */
  readonly owner: string;
}

function open({ number, sha, owner }: PullRequest): void {
  github.pulls.push({
    ...{ number, state: 'open', labels: [], base: { ref: 'main' } },
    head: { label: `${owner}:wider`, sha, repo: { id: owner.length } },
  });
}

/** The run that may only read, on the event of a push or a label. */
function reviewRun({ number, sha }: PullRequest): Promise<JobResult> {
  const pull_request = { number, head: { sha }, labels: github.pulls[0]!.labels };
  return runJob(review!, {
    github: { event: { pull_request }, base_ref: 'main', token: 'one that reads' },
    ...{ remote, ref: `refs/pull/${number}/head`, artifacts, env },
  });
}

/** The run that may write, on the event that the other one ended. */
function commentRun(
  { sha, owner }: PullRequest,
  conclusion: string,
  changed: object = {},
): Promise<JobResult> {
  const run = {
    ...{ id: 5, event: 'pull_request', conclusion, head_sha: sha, head_branch: 'wider' },
    head_repository: { id: owner.length, owner: { login: owner } },
    html_url: `${address}/actions/runs/5`,
    ...changed,
  };
  const context: RunContext = {
    github: { event: { workflow_run: run, repository: { html_url: address } }, token },
    ...{ remote, ref: 'main', artifacts },
    env: { ...env, GITHUB_API_URL: api, GITHUB_REPOSITORY: 'someone/luthier' },
  };
  return runJob(comment!, context);
}

const bodies = (number: number) => (github.comments.get(number) ?? []).map(({ body }) => body);
const states = (sha: string) => github.statuses.get(sha)?.map(({ state }) => state);
const reportFile = () => join(artifacts, 'config-review/report.json');

test('a pull request of this repository, then posted again with the label that its cost needs', async () => {
  const pull = { number: 1, sha: push(1, { 'experiments/small.ts': wider }), owner: 'someone' };
  open(pull);
  const first = await reviewRun(pull);
  expect(first.steps, first.output).toEqual([
    'success: actions/checkout',
    'success: actions/setup-node',
    'success: npm ci --ignore-scripts',
    'success: mkdir -p -m 700 ~/.cache/luthier',
    'success: actions/cache',
    'failure: Compare the experiments',
    'success: actions/upload-artifact',
    'success: Snapshots are current',
  ]);
  expect(first.summary).toMatch(/^### ❌ Fails: /);
  const posted = await commentRun(pull, first.conclusion);
  expect(posted.conclusion, posted.output).toBe('success');
  expect(posted.output).toContain('Pull request 1: failure, Fails: ');
  expect(bodies(1)).toHaveLength(1);
  expect(bodies(1)[0]).toContain('2 of 2 experiments load 1 changed file: `experiments/small.ts`.');
  if (isShort) return;
  github.pulls[0]!.labels.push({ name: 'costs-more' });
  expect((await commentRun(pull, first.conclusion)).conclusion).toBe('success');
  expect(states(pull.sha)).toEqual(['failure', 'success']);
  expect(bodies(1)).toHaveLength(1);
});

/** CI has the first pull request alone. */
const oneMore = test.skipIf(isShort);

oneMore(
  'a pull request from a fork with that label, whose reports are then forged, too long, of an older commit, or missing',
  async () => {
    const pull = { number: 2, sha: push(2, { 'experiments/small.ts': wider }), owner: 'mallory' };
    open(pull);
    github.pulls[0]!.labels.push({ name: 'costs-more' });
    const { conclusion, output, summary } = await reviewRun(pull);
    expect(conclusion, output).toBe('success');
    expect(summary).not.toContain('Fails');
    const honest = readFileSync(reportFile(), 'utf8');
    await commentRun(pull, conclusion);
    expect(bodies(2)[0]).toContain(summary.split('\n')[0]);

    const report = JSON.parse(honest) as { experiments: unknown[]; unchanged: number; old: object };
    writeFileSync(reportFile(), JSON.stringify({ ...report, experiments: [], unchanged: 1, thresholds: [] }));
    await commentRun(pull, 'success');
    expect(bodies(2)[0]).toContain('expected 2 unchanged or untouched, got 1.');

    writeFileSync(reportFile(), 'x'.repeat(10_000_001));
    await commentRun(pull, 'success');
    expect(bodies(2)[0]).toContain('has 10000001 bytes; expected at most 10000000.');

    rmSync(dirname(reportFile()), { recursive: true });
    await commentRun(pull, 'cancelled');
    expect(bodies(2)[0]).toContain('Its run ended as `cancelled`, without a report.');
    expect(states(pull.sha)).toEqual(['success', 'error', 'error', 'error']);

    github.pulls[0]!.head.sha = push(2, {
      'experiments/small.ts': small.replace('default(16)', 'default(24)'),
    });
    const said = (await commentRun(pull, 'success')).output;
    expect(said).toContain(`The pull request has newer commits than ${pull.sha}.`);
    expect(bodies(2)).toHaveLength(1);
    expect(states(pull.sha)).toHaveLength(4);
  },
);

oneMore(
  'a review that cannot evaluate anything leaves no report; a push is none of its business',
  async () => {
    const pull = {
      number: 3,
      sha: push(3, { 'src/tools/commandLine.ts': 'process.exit(2);\n' }),
      owner: 'mallory',
    };
    open(pull);
    const failed = await reviewRun(pull);
    expect(failed.steps).toContain('failure: Compare the experiments');
    expect((await commentRun(pull, failed.conclusion)).conclusion).toBe('success');
    expect(bodies(3)[0]).toContain('Its run ended as `failure`, without a report.');
    expect((await commentRun(pull, 'success', { event: 'push' })).conclusion).toBe('skipped');
  },
);
