/** @file The comment and status of a config review: what a stranger's report can say, and what it cannot. */
import { spawnSync } from 'node:child_process';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  marker,
  postReview,
  type ReviewEvent,
  renderedApart,
  type Target,
} from '../../scripts/postReview.js';
import { type ReviewRequest, reviewsOf } from '../../scripts/renderReview.js';
import type { DiffReport } from '../../src/review/reports/diffReport.js';
import { temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { experimentsFile, family, repositoryOf } from '../review/repository.js';
import { typescript } from '../typescriptEnvironment.js';
import { FakeGithub } from './github.js';

const token = 'a-token';
const small = experimentsFile('export class One extends Family {}', 'export class Two extends Family {}');
const repository = repositoryOf({
  'package.json': JSON.stringify({
    type: 'module',
    luthier: {
      review: { thresholds: [{ figure: 'parameters', moreThan: '10%', needsLabel: 'costs-more' }] },
    },
  }),
  'experiments/family.ts': family,
  'experiments/small.ts': small,
  'experiments/other.ts': experimentsFile('export class Three extends Family {}').replace(
    'family.js',
    'base.js',
  ),
  'experiments/base.ts': "export { Family } from './family.js';\n",
});
const { folder, git } = repository;
repository.write({
  'experiments/small.ts': `${small}\nexport class Four extends Family {\n  override steps = 9;\n}\n`,
});
git('commit', '--quiet', '--all', '--message=change');
const [base, head] = ['main', 'change'].map((name) => git('rev-parse', name).trim()) as [string, string];
git('update-ref', 'refs/remotes/origin/main', base);

const report: DiffReport = {
  format: 'luthier-config-diff',
  version: 1,
  old: { label: 'origin/main (0123456)', commit: base },
  new: { label: 'working tree', commit: head },
  experiments: [{ name: 'small.Four', status: 'added', constants: [], fields: [] }],
  declarations: [],
  thresholds: [],
  unchanged: 3,
  untouched: 0,
  notes: [],
};
const event: ReviewEvent = {
  workflow_run: {
    head_sha: head,
    head_branch: 'wider',
    head_repository: { id: 7, owner: { login: 'mallory' } },
    conclusion: 'success',
    html_url: 'https://github.example/someone/luthier/actions/runs/5',
  },
  repository: { html_url: 'https://github.example/someone/luthier' },
};
const run = '[The run](https://github.example/someone/luthier/actions/runs/5)';
let github: FakeGithub;
let target: Target;
let file: string;

beforeEach(async () => {
  github = new FakeGithub(token);
  addPull(12);
  const api = await github.start();
  target = { api, repository: 'someone/luthier', token, author: 'github-actions[bot]' };
  file = join(temporaryDirectory(), 'report.json');
});

afterEach(() => github.stop());

function addPull(number: number, { sha = head, id = 7, ref = 'main', label = 'mallory:wider' } = {}): void {
  github.pulls.push({
    ...{ number, state: 'open', labels: [] },
    head: { label, sha, repo: { id } },
    base: { ref },
  });
}

/** Posts a report, or a text in its place. */
function post(
  written: DiffReport | string,
  changed: Partial<ReviewEvent['workflow_run']> = {},
): Promise<string[]> {
  writeFileSync(file, typeof written === 'string' ? written : JSON.stringify(written));
  const told = { ...event, workflow_run: { ...event.workflow_run, ...changed } };
  return postReview(file, told, target, folder, reviewsOf);
}

const bodies = (number = 12) => (github.comments.get(number) ?? []).map(({ body }) => body);
const lastStatus = () => github.statuses.get(head)!.at(-1)!;
const comment = (id: number, login: string, body: string) => ({ id, body, user: { login } });

describe('a report that fits its commits', () => {
  it('is rendered here, beside what the sources say', async () => {
    expect(await post(report)).toEqual(['Pull request 12: success, 1 added, 3 the same.']);
    expect(bodies()).toHaveLength(1);
    expect(bodies()[0]).toMatch(new RegExp(`^${marker}\n### `));
    expect(bodies()[0]).toContain('`small.Four`');
    expect(bodies()[0]).toMatch(
      "\n\nThe pull request's own code evaluated its experiments. By git and source text alone, 3 of 4 experiments " +
        'load 1 changed file: `experiments/small.ts`.\n',
    );
    expect(github.statuses.get(head)).toEqual([
      {
        state: 'success',
        context: 'config review (main)',
        description: '1 added, 3 the same',
        target_url: event.workflow_run.html_url,
      },
    ]);
  });

  it('fails where an experiment breaks, whatever the run ended as', async () => {
    const broken = { ...report.experiments[0]!, status: 'broken', newError: { message: 'No.' } } as const;
    expect(await post({ ...report, experiments: [broken] })).toEqual([
      'Pull request 12: failure, Fails: 1 breaks, 3 the same.',
    ]);
    expect(lastStatus().state).toBe('failure');
  });

  it('needs the labels that the default branch asks for, which GitHub tells', async () => {
    const figures = {
      flopsPerToken: { old: 100, new: 120 },
      tokensPerStep: {},
      trainingTokens: {},
      trainingFlops: {},
      precision: {},
      deviceHours: {},
      price: {},
      peakMemory: {},
      parameters: { old: 100, new: 120 },
    };
    const one = { name: 'small.One', status: 'changed', constants: [], fields: [] } as const;
    const costlier = {
      ...report,
      experiments: [{ ...one, effects: figures }, ...report.experiments],
      unchanged: 2,
    };
    const said = ['1 costs more', '1 added', '2 the same'].join(', ');
    expect(await post(costlier)).toEqual([`Pull request 12: failure, Fails: ${said}.`]);
    github.pulls[0]!.labels.push({ name: 'costs-more' });
    expect(await post(costlier)).toEqual([`Pull request 12: success, ${said}.`]);
  });

  it('is posted once, and edited from then on, behind however many comments', async () => {
    github.comments.set(
      12,
      Array.from({ length: 230 }, (_, i) => comment(i, 'someone', 'I see.')),
    );
    await post(report);
    await post({ ...report, notes: ['More.'] });
    await post({ ...report, notes: ['More.'] });
    expect(bodies()).toHaveLength(231);
    expect(bodies().at(-1)).toContain('> More.');
    expect(github.requests.filter((each) => !each.startsWith('GET'))).toEqual([
      'POST issues/12/comments',
      `POST statuses/${head}`,
      'PATCH issues/comments/1230',
      `POST statuses/${head}`,
      `POST statuses/${head}`,
    ]);
  });

  it('leaves comments alone that others wrote, and own ones that only quote the marker', async () => {
    const others = [comment(1, 'mallory', `${marker}\nmine`), comment(2, target.author, `> ${marker}`)];
    github.comments.set(12, others);
    await post(report);
    expect(bodies().slice(0, 2)).toEqual([`${marker}\nmine`, `> ${marker}`]);
    expect(bodies()).toHaveLength(3);
  });

  it('makes no links and no mentions', async () => {
    const text =
      '@everyone #12 GH-12 [here](https://evil.example) www.evil.example <img src="https://evil.example">';
    await post({
      ...report,
      old: { ...report.old, label: text },
      experiments: [{ ...report.experiments[0]!, newError: { message: text } }],
      notes: [text],
    });
    const own = /\]\(https:\/\/github\.example\/someone\/luthier\/[\w/]+(?:#artifacts)?\)/g;
    const outside = bodies()[0]!
      .replace(/(`+)[\s\S]*?\1/g, 'CODE')
      .replace(own, ']')
      .replaceAll('<!-- -->', '\u200b');
    expect(outside).not.toMatch(/[@#]\w|GH-|https?:\/|www\.|(?<!\\)\]\(|(?<!\\)<img/);
  });
});

describe('a report that was forged', () => {
  it.each<[string, DiffReport | string, string]>([
    ['of another commit', { ...report, new: { label: 'x', commit: base } }, 'report.new.commit: expected '],
    ['that is none', '### Nothing changed @everyone', 'The report is no JSON: '],
    ['that is too long', 'x'.repeat(10_000_001), 'has 10000001 bytes; expected at most 10000000.'],
  ])('%s is refused', async (_, forged, problem) => {
    expect(await post(forged)).toEqual(['Pull request 12: error, config review refused.']);
    const [first, second, ...rest] = bodies()[0]!.split('\n\n');
    expect(first).toBe(`${marker}\n### ⚠️ \`${head.slice(0, 7)}\`: config review refused`);
    expect(second).toBe(
      'Its report does not fit the commits, or is not of the form that the default branch knows:',
    );
    expect(rest[0]).toMatch(/^```text\n.*\n```$/);
    expect(rest[0]).toContain(problem);
    expect(rest[1]).toBe(`${run} tells more.\n`);
    expect(lastStatus()).toMatchObject({ state: 'error', description: 'config review refused' });
  });

  it('is not read through a link', async () => {
    symlinkSync('/etc/hostname', file);
    const said = postReview(file, event, target, folder);
    expect(await said).toEqual(['Pull request 12: error, config review refused.']);
    expect(bodies()[0]).toContain('\nThe report is no plain file.\n');
    rmSync(file);
  });
});

describe('a run without a report', () => {
  it.each(['failure', 'cancelled', 'timed_out'])(
    'that ended as %s takes the place of the last review',
    async (conclusion) => {
      await post(report);
      expect(await post('', { conclusion })).toEqual(['Pull request 12: error, no config review.']);
      expect(bodies()).toEqual([
        `${marker}\n### ⚠️ \`${head.slice(0, 7)}\`: no config review\n\n` +
          `Its run ended as \`${conclusion}\`, without a report.\n\n${run} tells more.\n`,
      ]);
      expect(lastStatus()).toMatchObject({ state: 'error', description: 'no config review' });
    },
  );
});

describe('however it goes wrong, the commit has a status', () => {
  it('without a commit in common', async () => {
    git(
      'update-ref',
      'refs/remotes/origin/apart',
      git('commit-tree', '-m', 'apart', `${head}^{tree}`).trim(),
    );
    github.pulls.length = 0;
    addPull(14, { ref: 'apart' });
    expect(await post(report)).toEqual(['Pull request 14: error, config review refused.']);
    expect(bodies(14)[0]).toContain(`\n${head.slice(0, 7)} has no commit in common with apart.\n`);
    expect(lastStatus()).toMatchObject({ state: 'error', context: 'config review (apart)' });
  });

  it('where rendering takes too long', async () => {
    writeFileSync(file, JSON.stringify(report));
    const render = (request: ReviewRequest) => renderedApart(request, 0.001);
    expect(await postReview(file, event, target, folder, render)).toEqual([
      'Pull request 12: error, config review refused.',
    ]);
    expect(bodies()[0]).toContain('\nNo answer within 0.001 s.\n');
  });

  it('where the comment is too long, or GitHub does not take it', async () => {
    await post(report);
    const long = (request: ReviewRequest) =>
      reviewsOf(request).map((each) => ({ ...each, markdown: 'x'.repeat(65_500) }));
    writeFileSync(file, JSON.stringify(report));
    expect(await postReview(file, event, target, folder, long)).toEqual([
      'Pull request 12: error, config review refused.',
    ]);
    expect(bodies()[0]).toContain('\nThe comment is longer than GitHub allows.\n');
    github.refused = /comments/;
    await expect(post(report)).rejects.toThrow(/comments.*GitHub answered 422/);
    expect(lastStatus()).toMatchObject({ state: 'error', description: 'GitHub did not take the comment' });
  });
});

describe('pull requests', () => {
  it('of another repository get nothing, whatever their branch is called', async () => {
    github.pulls.length = 0;
    addPull(13, { id: 8 });
    expect(await post(report)).toEqual(['No open pull request is of this branch.']);
    expect(await post(report, { head_repository: null })).toEqual([
      'No open pull request is of this branch.',
    ]);
    expect(github.requests.filter((each) => !each.startsWith('GET'))).toEqual([]);
  });

  it('with newer commits wait for the review of those', async () => {
    github.pulls.length = 0;
    addPull(12, { sha: base });
    expect(await post(report)).toEqual([`The pull request has newer commits than ${head}.`]);
    expect([github.comments.size, github.statuses.size]).toEqual([0, 0]);
  });

  it('of one branch are told apart by where they left their bases', async () => {
    git('update-ref', 'refs/remotes/origin/release', head);
    addPull(13, { ref: 'release' });
    expect(await post(report)).toEqual(['Pull request 12: success, 1 added, 3 the same.']);
    const nothing = { ...report, old: { label: 'release', commit: head }, experiments: [], unchanged: 4 };
    expect(await post(nothing)).toEqual(['Pull request 13: success, 4 the same.']);
    expect(lastStatus().context).toBe('config review (release)');
    expect(bodies(13)[0]).toContain('By git and source text alone, no experiment loads a changed file.');
  });

  it('are not written to where GitHub refuses', async () => {
    target = { ...target, token: 'another' };
    await expect(post(report)).rejects.toThrow(
      'GET pulls?state=open&head=mallory%3Awider&per_page=100&page=1: GitHub answered 401: {"message":"Bad credentials"}',
    );
  });
});

longTest('the script ends with an error where the event is another one', () => {
  const script = fileURLToPath(new URL('../../scripts/postReview.ts', import.meta.url));
  writeFileSync(file, '{}');
  const { status, stderr } = spawnSync(process.execPath, ['--import', typescript, script, file], {
    env: {
      PATH: process.env.PATH,
      ...{ GITHUB_API_URL: target.api, GITHUB_REPOSITORY: target.repository, GITHUB_TOKEN: token },
      GITHUB_EVENT_PATH: file,
    },
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^This is for the event workflow_run:\n/)]);
});
