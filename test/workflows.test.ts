/** @file The workflows on GitHub: they are valid, what may write never runs what a stranger wrote, and actions are pinned. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { problemsOf, readWorkflow, stepsOf, type Workflow } from './workflows.js';

const folder = new URL('../.github/workflows/', import.meta.url);
const names = readdirSync(folder);
const [checks, comment, review] = ['ci.yml', 'config-review-comment.yml', 'config-review.yml'].map(
  readWorkflow,
) as [Workflow, Workflow, Workflow];
const using = (workflow: Workflow, action: string) =>
  stepsOf(workflow).filter(({ uses }) => uses?.startsWith(`actions/${action}@`) === true);
const expression = (text: string) => `$\{{ ${text} }}`;
const runs = (workflow: Workflow) => stepsOf(workflow).flatMap(({ run }) => run ?? []);

describe.each(names)('%s', (name) => {
  const content = readFileSync(new URL(name, folder), 'utf8');
  const workflow = readWorkflow(name);

  it('is a workflow, as far as GitHub tells before it runs one', async () => {
    expect(await problemsOf(content)).toEqual([]);
    const misspelt = await problemsOf(content.replace('runs-on:', 'run-on:'));
    expect(misspelt).toContainEqual(expect.stringMatching(/: Unexpected value 'run-on'$/));
  });

  it('has no expressions in what a shell runs', () => {
    for (const run of runs(workflow)) expect(run).not.toContain('${{');
  });

  it('uses actions of GitHub alone, each at a commit whose version stands beside it', () => {
    const used = content.split('\n').filter((line) => /\buses:/.test(line));
    expect(used.length).toBeGreaterThan(0);
    for (const line of used) expect(line).toMatch(/- uses: actions\/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });
});

it('the same version of an action is the same commit in every workflow', () => {
  const used = names.flatMap((name) => stepsOf(readWorkflow(name)).flatMap(({ uses }) => uses ?? []));
  const actions = new Set(used.map((each) => each.split('@')[0]));
  expect(new Set(used).size).toBe(actions.size);
});

describe('the checks', () => {
  it("are the README's, may read alone, and keep no token", () => {
    expect(checks.on).toEqual({ push: { branches: ['main'] }, pull_request: null });
    expect(checks.permissions).toEqual({ contents: 'read' });
    expect(runs(checks)).toEqual(['npm cit', 'bash scripts/test-kernels.sh portable']);
    expect(readFileSync(new URL('../README.md', import.meta.url), 'utf8')).toMatch(/^ {4}npm cit {2,}# /m);
    expect(using(checks, 'checkout').map((step) => step.with)).toEqual([{ 'persist-credentials': false }]);
  });
});

describe('the review of configs', () => {
  it('runs on pull requests and when their labels change, and may read alone', () => {
    expect(review.on).toEqual({
      pull_request: { types: ['opened', 'synchronize', 'reopened', 'labeled', 'unlabeled'] },
    });
    expect(review.permissions).toEqual({ contents: 'read' });
    expect(Object.values(review.jobs).map(({ permissions }) => permissions)).toEqual([undefined]);
    expect(JSON.stringify([review, checks])).not.toMatch(/secrets|github\.token/);
  });

  it('is of the commit that was pushed, in a clone with all of the history and no token', () => {
    expect(using(review, 'checkout').map((step) => step.with)).toEqual([
      {
        ref: expression('github.event.pull_request.head.sha'),
        'fetch-depth': 0,
        'persist-credentials': false,
      },
    ]);
  });
});

describe('packages of the base', () => {
  it('are installed where the workflow allows it, which by default it does not', () => {
    const { env, run } = stepsOf(review).find(({ name }) => name === 'Compare the experiments')!;
    expect(env).toMatchObject({ INSTALL: '' });
    expect(run).toContain('luthier diff --base="$BASE" $INSTALL --format=json');
  });
});

describe('the answers of earlier reviews', () => {
  it('are kept between runs, in a folder that is private before they are restored', () => {
    const steps = stepsOf(review);
    const at = steps.findIndex(({ uses }) => uses?.startsWith('actions/cache@') === true);
    expect(steps[at - 1]!.run).toBe('mkdir -p -m 700 ~/.cache/luthier');
    expect(steps[at]!.with).toEqual({
      path: '~/.cache/luthier/reviews',
      key: `config-review-${expression('runner.os')}-${expression('github.event.pull_request.head.sha')}`,
      'restore-keys': `config-review-${expression('runner.os')}-`,
    });
  });
});

describe('the comment of the review', () => {
  it('follows that workflow by its name, in a job that may write comments and statuses', () => {
    expect(comment.on).toEqual({ workflow_run: { workflows: [review.name], types: ['completed'] } });
    expect(comment.permissions).toEqual({});
    expect(comment.jobs.comment!.permissions).toEqual({
      actions: 'read',
      contents: 'read',
      'pull-requests': 'write',
      statuses: 'write',
    });
  });

  it('runs nothing of the pull request: its checkout and its packages are those of the default branch', () => {
    expect(using(comment, 'checkout').map((step) => step.with)).toEqual([{ 'fetch-depth': 0 }]);
    expect(runs(comment)).toEqual([
      'npm ci --ignore-scripts',
      'git fetch --no-tags origin "$HEAD_SHA"',
      'npx --no-install tsx scripts/postReview.ts "$RUNNER_TEMP/config-review/report.json"',
    ]);
  });

  it('takes no cache that a pull request could have filled', () => {
    expect(using(comment, 'setup-node').map((step) => step.with)).toEqual([{ 'node-version': 22 }]);
  });

  it('takes the artifact that the review leaves, outside of the checkout', () => {
    const [left, taken] = [using(review, 'upload-artifact'), using(comment, 'download-artifact')];
    for (const [step] of [left, taken])
      expect(step!.with).toMatchObject({
        name: 'config-review',
        path: `${expression('runner.temp')}/config-review`,
      });
  });
});
