/** @file The workflows on GitHub: what may write never runs what a stranger wrote. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Workflow {
  readonly name: string;
  readonly on: unknown;
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<string, { permissions?: Record<string, string>; if?: string; steps: readonly Step[] }>
  >;
}

function read(name: string): Workflow {
  const text = readFileSync(new URL(`../.github/workflows/${name}`, import.meta.url), 'utf8');
  return parse(text, { strict: true, uniqueKeys: true }) as Workflow;
}

const review = read('config-review.yml');
const comment = read('config-review-comment.yml');
const stepsOf = ({ jobs }: Workflow) => Object.values(jobs).flatMap(({ steps }) => steps);
const using = (workflow: Workflow, action: string) =>
  stepsOf(workflow).filter(({ uses }) => uses?.startsWith(`actions/${action}@`) === true);

describe('the review of configs', () => {
  it('runs on pull requests, and may read alone', () => {
    expect(review.on).toBe('pull_request');
    expect(review.permissions).toEqual({ contents: 'read' });
    expect(Object.values(review.jobs).map(({ permissions }) => permissions)).toEqual([undefined]);
    expect(JSON.stringify(review)).not.toMatch(/secrets|github\.token/);
  });

  it('compares with the base as Markdown, from a clone with all of the history', () => {
    expect(using(review, 'checkout').map((step) => step.with)).toEqual([
      { 'fetch-depth': 0, 'persist-credentials': false },
    ]);
    const compare = stepsOf(review).find(({ run }) => run?.includes('luthier diff') === true)!;
    expect(compare.run).toContain('npx --no-install luthier diff --base="$BASE" --format=markdown');
  });
});

describe('the comment of the review', () => {
  it('follows that workflow by its name, in a job that may write to pull requests', () => {
    expect(comment.on).toEqual({ workflow_run: { workflows: [review.name], types: ['completed'] } });
    expect(comment.permissions).toEqual({});
    expect(comment.jobs.comment!.permissions).toEqual({
      actions: 'read',
      contents: 'read',
      'pull-requests': 'write',
    });
  });

  it('runs nothing of the pull request: its checkout is the default branch, and it installs nothing', () => {
    expect(using(comment, 'checkout').map((step) => step.with)).toEqual([{ 'persist-credentials': false }]);
    const commands = stepsOf(comment).flatMap(({ run }) => run ?? []);
    expect(commands).toEqual(['node scripts/postReview.ts "$RUNNER_TEMP/config-review"']);
  });

  it('takes the artifact that the review leaves', () => {
    const [left, taken] = [using(review, 'upload-artifact'), using(comment, 'download-artifact')];
    expect(left.map((step) => step.with?.name)).toEqual(['config-review']);
    expect(taken.map((step) => step.with?.name)).toEqual(['config-review']);
    expect(taken[0]!.with?.path).toMatch(/^\$\{\{ runner\.temp \}\}\/config-review$/);
  });
});

describe.each([review, comment])('$name', (workflow) => {
  it('has no expressions in what a shell runs', () => {
    for (const { run } of stepsOf(workflow)) expect(run ?? '').not.toContain('${{');
  });

  it('uses actions of GitHub alone, at versions', () => {
    for (const { uses } of stepsOf(workflow))
      expect(uses ?? 'actions/none@v1').toMatch(/^actions\/[a-z-]+@v\d+$/);
  });
});
