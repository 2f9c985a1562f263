/** @file Commits that are made to break their review: each ends with a comment in place of the last one, and a status. */
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { marker, postReview } from '../../scripts/postReview.js';
import type { DiffReport, ExperimentReport } from '../../src/review/reports/diffReport.js';
import { temporaryDirectory } from '../command.js';
import { FakeGithub } from '../scripts/github.js';
import { kinds } from './kinds.js';
import { experimentsFile, family, repositoryOf } from './repository.js';

const test = kinds();

const { folder, git, write } = repositoryOf({
  'package.json': JSON.stringify({
    type: 'module',
    luthier: {
      review: { thresholds: [{ figure: 'experiments', when: 'removed', needsLabel: 'removes' }] },
    },
  }),
  'experiments/family.ts': family,
  'experiments/small.ts': experimentsFile(
    'export class One extends Family {}',
    'export class Two extends Family {\n  override steps = 9;\n}',
  ),
});
git('update-ref', 'refs/remotes/origin/main', 'main');
const base = git('rev-parse', 'main').trim();

let github: FakeGithub;
let api: string;
beforeAll(async () => {
  github = new FakeGithub('a-token');
  api = await github.start();
});
afterAll(() => github.stop());

/** Commits what `act` does to the base, and reviews it by a report of these rows. @returns comment and status */
async function reviewed(
  act: () => void,
  rows: readonly ExperimentReport[] = [],
  unchanged = 2,
): Promise<{ comment: string; state: string; line: string }> {
  git('reset', '--quiet', '--hard', 'main');
  git('clean', '--quiet', '--force', '-d');
  act();
  git('add', '--all');
  git('commit', '--quiet', '--allow-empty', '--message=change');
  return posted(git('rev-parse', 'HEAD').trim(), rows, unchanged);
}

async function posted(head: string, rows: readonly ExperimentReport[], unchanged: number) {
  const report: DiffReport = {
    format: 'luthier-config-diff',
    version: 1,
    old: { label: 'main', commit: base },
    new: { label: 'working tree', commit: head },
    experiments: rows,
    declarations: [],
    thresholds: [],
    unchanged,
    untouched: 0,
    notes: [],
  };
  const file = join(temporaryDirectory(), 'report.json');
  writeFileSync(file, JSON.stringify(report));
  github.pulls.length = 0;
  github.pulls.push({
    ...{ number: 1, state: 'open', labels: [] },
    head: { label: 'mallory:wider', sha: head, repo: { id: 7 } },
    base: { ref: 'main' },
  });
  const author = 'github-actions[bot]';
  github.comments.set(1, [{ id: 3, body: `${marker}\n### the last one\n`, user: { login: author } }]);
  await postReview(
    file,
    {
      workflow_run: {
        head_sha: head,
        head_branch: 'wider',
        head_repository: { id: 7, owner: { login: 'mallory' } },
        conclusion: 'success',
        html_url: 'https://github.example/runs/5',
      },
      repository: { html_url: 'https://github.example/someone/luthier' },
    },
    { api, repository: 'someone/luthier', token: 'a-token', author },
    folder,
  );
  const comments = github.comments.get(1)!;
  expect(comments).toHaveLength(1);
  expect(comments[0]!.body.length).toBeLessThan(65_536);
  expect(comments[0]!.body).not.toContain('the last one');
  const { state, description } = github.statuses.get(head)!.at(-1)!;
  return { comment: comments[0]!.body, state, line: description };
}

const row = (name: string, status: ExperimentReport['status'], more = {}): ExperimentReport => ({
  ...{ name, status, constants: [], fields: [] },
  ...more,
});
const refused = 'config review refused';

test('an experiment that was removed, as if it were the same', async () => {
  const act = () => write({ 'experiments/small.ts': experimentsFile('export class One extends Family {}') });
  expect(await reviewed(act)).toMatchObject({ state: 'error', line: refused });
  expect(await reviewed(act, [row('small.Two', 'unchanged')], 1)).toMatchObject({
    state: 'error',
    line: refused,
  });
  expect(await reviewed(act, [row('small.Two', 'removed')], 1)).toMatchObject({
    state: 'failure',
    line: 'Fails: 1 removed, 1 the same',
  });
});

test('one that was removed, as if it had become another one', async () => {
  const act = () =>
    write({
      'experiments/small.ts': experimentsFile(
        'export class One extends Family {}',
        'export class New extends Family {\n  override numLayers = 1;\n}',
      ),
    });
  const former = {
    ...{ name: 'small.Two', evidence: ['configs'], oldFile: 'a.ts', newFile: 'b.ts', alias: '@everyone' },
  };
  const told = await reviewed(act, [row('small.New', 'moved', { former })], 1);
  expect(told).toMatchObject({
    state: 'failure',
    line: 'Fails: 1 removed, 1 under another name, 1 the same',
  });
  expect(told.comment).toContain('small.Two extended Family at experiments/small.ts:4');
  expect(told.comment).not.toContain('everyone');
});

test('one that was renamed, whose text shows it', async () => {
  const act = () =>
    write({
      'experiments/small.ts': experimentsFile(
        'export class One extends Family {}',
        'export class New extends Family {\n  override steps = 9;\n}',
      ),
    });
  const former = {
    ...{ name: 'small.Two', evidence: ['configs'], oldFile: 'a.ts', newFile: 'b.ts', alias: 'x' },
  };
  const told = await reviewed(act, [row('small.New', 'moved', { former })], 1);
  expect(told).toMatchObject({ state: 'success', line: '1 under another name, 1 the same' });
  expect(told.comment).toContain('export { New as Two };');
});

test('a link called experiments', async () => {
  const told = await reviewed(() => {
    git('mv', 'experiments', 'elsewhere');
    symlinkSync('elsewhere', join(folder, 'experiments'));
  });
  expect(told).toMatchObject({ state: 'error', line: refused });
  expect(told.comment).toContain('Not read: experiments: It is a symbolic link, which is not followed here.');
});

test('a file called experiments', async () => {
  const told = await reviewed(() => {
    rmSync(join(folder, 'experiments'), { recursive: true });
    write({ experiments: 'no folder' });
  });
  expect(told).toMatchObject({ state: 'error', line: refused });
  expect(told.comment).toContain('no row for names that only one commit declares: small.One, small.Two');
});

test('a folder called x.ts, which an experiment imports', async () => {
  const told = await reviewed(() =>
    write({ 'experiments/x.ts/y.ts': '', 'experiments/z.ts': "import './x.ts';\nimport './x.js';" }),
  );
  expect(told).toMatchObject({ state: 'success', line: '2 the same' });
});

test('20,000 parentheses', async () => {
  const told = await reviewed(() => write({ 'experiments/small.ts': '('.repeat(20_000) }));
  expect(told).toMatchObject({ state: 'error', line: refused });
  expect(told.comment).toContain('experiments/small.ts: It is nested too deeply.');
});

test('60,000 empty lines, and as many of other texts that patterns could linger at', async () => {
  const long = ['\n', ' ', ';\n', 'import ', '/*', "'", '`', '`${', '<a ', '// \n', '{'].map((part, i) => [
    `experiments/long${i}.ts`,
    part.repeat(60_000),
  ]);
  const told = await reviewed(() => write(Object.fromEntries(long)));
  expect(told).toMatchObject({ state: 'success', line: '2 the same' });
});

test('names of 260 bytes', async () => {
  git('reset', '--quiet', '--hard', 'main');
  const blob = git('rev-parse', 'HEAD:experiments/small.ts').trim();
  git('update-index', '--add', '--cacheinfo', `100644,${blob},experiments/${'a'.repeat(260)}.ts`);
  git('commit', '--quiet', '--message=long');
  const head = git('rev-parse', 'HEAD').trim();
  const told = await posted(head, [], 2);
  expect(told).toMatchObject({ state: 'error', line: refused });
  expect(told.comment).toContain('File name too long');
});

test('no commit in common', async () => {
  const head = git('commit-tree', '-m', 'apart', 'main^{tree}').trim();
  const told = await posted(head, [], 2);
  expect(told).toMatchObject({ state: 'error', line: refused });
  expect(told.comment).toContain('has no commit in common with main.');
});

test('experiments and files with the longest names that would fill several comments', async () => {
  const names = Array.from({ length: 40 }, (_, i) => `${'A\u200d'.repeat(8000)}${i}`);
  const rows = names.map((name) => row(`long.${name}`, 'added'));
  const notes = rows.map((each, i) => ({
    ...each,
    newError: { message: `${i}${'\u202e`|@a'.repeat(15_000)}`, place: '\u202e'.repeat(9000) },
  }));
  const act = () =>
    write({
      ...Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`lib/${'ä\u202e'.repeat(45)}${i}.ts`, ''])),
      'experiments/long.ts': experimentsFile(
        ...names.map((name) => `export class ${name} extends Family {}`),
      ),
    });
  const told = await reviewed(act, notes);
  expect(told.line).toMatch(/^40 added, 2 the same$/);
});

test('an `.gitattributes` whose filter fails, and a `.gitmodules` of nowhere', async () => {
  const told = await reviewed(() =>
    write({
      '.gitattributes': '* filter=lfs diff=evil text eol=crlf',
      '.gitmodules': '[submodule "x"]\n\tpath = x\n\turl = ext::sh',
    }),
  );
  expect(told).toMatchObject({ state: 'success' });
  expect(told.comment).toContain('All depend on `.gitattributes`, `.gitmodules`, which changed.'.slice(4));
});

test('a submodule in the place of the experiments', async () => {
  git('reset', '--quiet', '--hard', 'main');
  git('rm', '--quiet', '-r', '--cached', 'experiments');
  git('update-index', '--add', '--cacheinfo', `160000,${base},experiments`);
  git('commit', '--quiet', '--message=submodule');
  const told = await posted(git('rev-parse', 'HEAD').trim(), [], 2);
  expect(told).toMatchObject({ state: 'error', line: refused });
});

test('a manifest and settings that are no JSON, or lead in a circle', async () => {
  const told = await reviewed(
    () =>
      write({
        'tsconfig.json':
          '{ "extends": ["./tsconfig.json", "./tsconfig"], "compilerOptions": { "paths": { "*": [5], "**": null, "a*": "./a*" } } }',
        'experiments/package.json': '{ "imports": 7, "name": {}, "dependencies": null, "exports": [[[]]] }',
        'experiments/small.ts': experimentsFile(
          "import 'a/b';\nimport '#x';\nimport 'experiments';\nimport '';\nimport '.';\nimport '/';\nimport 'file:';\nimport '@';\nimport 'a*';",
          'export class One extends Family {}',
          'export class Two extends Family {\n  override steps = 9;\n}',
        ),
      }),
    [],
    2,
  );
  expect(told).toMatchObject({ state: 'success', line: '2 the same' });
  expect(told.comment).toContain('`experiments/small.ts`');
});
